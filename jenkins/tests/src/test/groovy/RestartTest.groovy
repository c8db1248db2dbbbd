import com.lesfurets.jenkins.unit.cps.PipelineTestHelperCPS
import org.junit.Test

/** The pipelines as Jenkins compiles them, with all that they hold serialised after every step: they survive a restart of Jenkins. */
class RestartTest extends Jenkins {
    static final Map ASKED = [TESTBEDS: 'topologies/one.yaml topologies/two.yaml', REASON: 'a restart', VPP: '/opt/vpp']

    RestartTest() {
        helper = new PipelineTestHelperCPS()
        env.CSIT_CREDENTIALS = 'lab-password:LAB_PASSWORD'
        env.CSIT_SSH_KEYS = 'lab-key'
        env.CSIT_HISTORY = '/srv/history'
    }

    @Test
    void 'everything that runs can be put on disk'() {
        files['/srv/history'] = ''
        List outcomes = [3, 0, 1]
        shell = { Line line ->
            files["${line.env.RESULTS}/output.xml".toString()] = '<robot/>'
            files["${line.env.RESULTS}/reservation".toString()] = 'CSIT_RESERVATION=token'
            return line.script.startsWith('./csit outcome ') ? outcomes.remove(0) : 0
        }
        assert build('patch', ASKED) == 'UNSTABLE'
        assert outcomes.isEmpty()
        assert lines.count { it.script.startsWith('./csit release ') } == 2
        assert published.size() == 2
    }
}
