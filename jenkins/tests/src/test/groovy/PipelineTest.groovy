import org.junit.Before
import org.junit.Test

/** The logic of the pipelines: what runs in which order, and what runs whatever happens. */
class PipelineTest extends Jenkins {
    static final String RESERVE = './csit reserve '
    static final String DOCTOR = './csit doctor '
    static final String RUN = './csit robot -v '
    static final String RESUME = './csit robot --resume '
    static final String OUTCOME = './csit outcome '
    static final String CLEANUP = './csit cleanup '
    static final String RELEASE = './csit release '
    static final String REPORT = './csit report '
    static final String IMPORT = './csit import '
    static final String GATE = './csit gate '
    static final String TREND = './csit trend '
    static final String NIGHT = './csit night "$TESTBED"'
    static final String RESUME_NIGHT = './csit night --resume '
    static final String EXPORT = './csit export '
    static final String BISECT = './csit bisect '
    static final Map ASKED = [TESTBEDS: 'topologies/one.yaml', REASON: 'a look at density']

    /** Statuses of lines by what they begin with, one for each time; 0 afterwards. An exception is thrown. */
    Map<String, List> answers = [:]
    /** What the trend writes. */
    String confirmed = '[]'

    @Before
    void answer() {
        shell = { Line line ->
            String results = line.env.RESULTS
            def answered = 0
            answers.each { beginning, values ->
                if (line.script.startsWith(beginning) && values) { answered = values.remove(0) }
            }
            if (line.script.startsWith(RESERVE) && answered == 0) {
                files["${results}/reservation".toString()] = "CSIT_RESERVATION=token-of-${line.env.TOPOLOGY}\n"
            }
            if (line.script.startsWith(RUN)) { files["${results}/output.xml".toString()] = '<robot/>' }
            if (line.script.startsWith(NIGHT)) { files["${results}/night/night.html".toString()] = '<html/>' }
            if (line.script.startsWith(GATE)) { files["${results}/steps.json".toString()] = '[{"cell": "CSC 1x1 1c"}]' }
            if (line.script.startsWith(TREND)) { files["${results}/trend.json".toString()] = confirmed }
            if (line.script.startsWith(BISECT)) { files["${results}/bisect/bisection.html".toString()] = '<html/>' }
            if (answered instanceof Exception) { throw answered }
            return answered
        }
    }

    private List<String> order(String branch) {
        List<String> known = [RESERVE, 'jenkins/install-vpp ', DOCTOR, RUN, RESUME, OUTCOME, CLEANUP, RELEASE, REPORT, IMPORT, GATE,
                              TREND, NIGHT, RESUME_NIGHT, BISECT]
        return linesOf(branch).collect { String line -> known.find { line.startsWith(it) } }.findAll { it }
    }

    private List<String> stagesOf(String branch) { lines.findAll { it.branch == branch }*.stages*.last().unique() }

    @Test
    void 'all stages run in their order'() {
        assert build('density', ASKED) == 'SUCCESS'
        assert order('one') == [RESERVE, DOCTOR, RUN, OUTCOME, CLEANUP, RELEASE, REPORT]
        assert stagesOf('one') == ['Prepare', 'Reserve', 'Doctor', 'Run', 'Release', 'Report', 'Archive']
        assert published*.reportName*.toString() == ['Density of one']
        assert archived*.toString() == ['results/one/**/xunit.xml', 'results/one/**']
    }

    @Test
    void 'studies run after the density tests, and make the build unstable where they fail'() {
        Map night = ASKED + [STUDIES: 'OUTAGE']
        for (Map each in [[outcomes: [0, 0], result: 'SUCCESS'], [outcomes: [0, 1], result: 'UNSTABLE']]) {
            lines.clear()
            answers[OUTCOME] = each.outcomes
            assert build('nightly', night) == each.result
            assert order('one') == [RESERVE, DOCTOR, RUN, OUTCOME, RUN, OUTCOME, CLEANUP, RELEASE, REPORT]
            Line study = lines.findAll { it.script.startsWith(RUN) }.last()
            assert study.script.contains('tests/characterization') && study.env.STUDIES == 'OUTAGE'
            assert study.timeouts == [[time: 12, unit: 'HOURS']]
        }
        lines.clear()
        answers[OUTCOME] = [2]
        assert build('nightly', night) == 'FAILURE'
        assert order('one').count(RUN) == 1
        lines.clear()
        assert build('density', night) == 'SUCCESS'
        assert order('one').count(RUN) == 2
    }

    @Test
    void 'a study that was cut short is resumed once, on a cleaned testbed'() {
        Map night = ASKED + [STUDIES: 'OUTAGE']
        for (Map each in [[outcomes: [1, 3, 0], result: 'UNSTABLE'], [outcomes: [0, 3, 0], result: 'SUCCESS'], [outcomes: [0, 3, 3], result: 'UNSTABLE']]) {
            lines.clear()
            answers[OUTCOME] = each.outcomes
            assert build('nightly', night) == each.result
            assert order('one') == [RESERVE, DOCTOR, RUN, OUTCOME, RUN, OUTCOME, CLEANUP, DOCTOR, RESUME, OUTCOME, CLEANUP, RELEASE, REPORT]
            Line resumed = lines.find { it.script.startsWith(RESUME) }
            assert resumed.script.contains('/studies"') && resumed.stages.last() == 'Resume studies'
            assert resumed.timeouts == [[time: 12, unit: 'HOURS']]
        }
    }

    @Test
    void 'a run that was cut short is resumed once, on a cleaned testbed'() {
        answers[RUN] = [137]
        answers[OUTCOME] = [3, 0]
        assert build('density', ASKED) == 'SUCCESS'
        assert order('one') == [RESERVE, DOCTOR, RUN, OUTCOME, CLEANUP, DOCTOR, RESUME, OUTCOME, CLEANUP, RELEASE, REPORT]
    }

    @Test
    void 'a run that cannot be finished is a failure, and what was measured is reported'() {
        answers[OUTCOME] = [3, 3]
        assert build('density', ASKED) == 'FAILURE'
        assert order('one').count(RESUME) == 1
        assert order('one')[-2..-1] == [RELEASE, REPORT]
    }

    @Test
    void 'failed tests make the build unstable and are not measured again'() {
        answers[RUN] = [2]
        answers[OUTCOME] = [1]
        assert build('density', ASKED) == 'UNSTABLE'
        assert !order('one').contains(RESUME)
        assert order('one')[-2..-1] == [RELEASE, REPORT]
    }

    @Test
    void 'tests that failed before and after resuming make it unstable'() {
        answers[OUTCOME] = [3, 1]
        assert build('density', ASKED) == 'UNSTABLE'
    }

    @Test
    void 'a run that never began is a failure and is not resumed'() {
        answers[RUN] = [2]
        answers[OUTCOME] = [2]
        assert build('density', ASKED) == 'FAILURE'
        assert !order('one').contains(RESUME)
    }

    @Test
    void 'the testbed is released whatever fails'() {
        for (String where in [DOCTOR, RUN, OUTCOME, CLEANUP, REPORT]) {
            for (Object how in [1, new Interrupted('aborted'), new Interrupted('timeout')]) {
                lines.clear()
                files.clear()
                answers = [(where): [how]]
                String result = build('density', ASKED)
                assert order('one').count(RELEASE) == 1, "${where} ${how}"
                String expected = how instanceof Exception ? 'ABORTED' : where in [DOCTOR, CLEANUP, REPORT] ? 'FAILURE' : null
                assert expected == null || result == expected, "${where} ${how}"
                assert archived
            }
        }
    }

    @Test
    void 'a sick testbed is not measured'() {
        answers[DOCTOR] = [1]
        assert build('density', ASKED) == 'FAILURE'
        assert order('one') == [RESERVE, DOCTOR, CLEANUP, RELEASE]
    }

    @Test
    void 'a build aborted in the waiting for somebody else touches nothing of theirs'() {
        for (Object how in [1, new Interrupted('aborted')]) {
            lines.clear()
            answers = [(RESERVE): [how]]
            assert build('density', ASKED) in ['FAILURE', 'ABORTED']
            assert order('one') == [RESERVE]
        }
    }

    @Test
    void 'a build aborted just after the reservation gives it back'() {
        files['results/one/reservation'] = 'CSIT_RESERVATION=mine\n'
        answers[RESERVE] = [new Interrupted('aborted')]
        assert build('density', ASKED) == 'ABORTED'
        assert order('one') == [RESERVE, CLEANUP, RELEASE]
        assert lines.find { it.script.startsWith(RELEASE) }.env.CSIT_RESERVATION == 'mine'
    }

    @Test
    void 'no timeout is around the release'() {
        build('density', ASKED + [HOURS: '5'])
        assert lines.find { it.script.startsWith(RUN) }.timeouts == [[time: 5, unit: 'HOURS']]
        assert lines.findAll { it.script.startsWith(RELEASE) || it.script.startsWith(CLEANUP) }*.timeouts == [[], []]
        assert lines.find { it.script.startsWith(RESERVE) }.env.LEASE == '6h'
    }

    @Test
    void 'testbeds are measured side by side, each with its own reservation and results'() {
        answers[OUTCOME] = [3, 3, 0]
        assert build('density', ASKED + [TESTBEDS: 'topologies/one.yaml  topologies/available/two.yaml']) == 'FAILURE'
        assert branches == ['one', 'two']
        assert order('two') == [RESERVE, DOCTOR, RUN, OUTCOME, CLEANUP, RELEASE, REPORT]
        for (Line line in lines.findAll { it.script =~ /csit (doctor|robot|cleanup|release)/ }) {
            String path = line.branch == 'one' ? 'topologies/one.yaml' : 'topologies/available/two.yaml'
            assert line.env.CSIT_RESERVATION == "token-of-${path}"
            assert line.env.TOPOLOGY == path
            assert line.env.RESULTS == "results/${line.branch}"
        }
    }

    @Test
    void 'parameters of another form are refused before anything is reserved'() {
        Map wrong = [
            TESTBEDS: ['', 'local.yaml', 'topologies/.yaml', 'topologies/-a.yaml', 'topologies/../../etc/x.yaml', 'topologies/a.yaml; reboot', 'topologies/a.yaml topologies/b/a.yaml'],
            TYPES: ['CNF', 'CSC CSP', ''], TESTS: ['SOAK'], CELLS: ['1x1 2x2', '$(id)', ''], NF_SIZES: ['-v'], NF_KINDS: ['a b', '-x'], VSWITCH: ['3'], FRAMES: ['*', '-v', '64B;id', 'pcap:', 'pcap:a b', 'pcap:../x.pcap', 'pcap:$(id)', '64B,pcap:`id`', '64B,,IMIX'],
            SEARCH: ['csit quick'], LOSSES: ['x', '100', '1; id'], ENERGY: ['0', '1000', '1; id'],
            BACK_TO_BACK: ['0', '1001', '5.5', '1; id'], STACKS: ['0', '1000', '$(id)'], NOISE_FLOOR: ['11', '-1', 'x', '1; id'], STUDIES: ['OUTAGE; id', '--x', 'A AND B'],
            INCLUDE: ['a b', '--x'], EXCLUDE: ['*'], VPP: ['latest', '/opt/../bin', '/opt/a b'], HOURS: ['0', '1h'],
            BUDGET: ['x', '1h', '-1'], STEP: ['$(id)', '[`id`]', 'a; b'],
            WAIT: ['2'], REASON: ['', ' ', 'two\nlines'],
        ]
        assert build('density', ASKED + [CELLS: wrong.CELLS[0]]) == 'FAILURE'
        assert lines.isEmpty()
        def measure = binding.getVariable('measure')
        wrong.each { name, values ->
            for (String value in values) {
                try {
                    measure.checked(ASKED + [(name): value])
                } catch (Failed refused) {
                    assert refused.message.startsWith("${name} ")
                    continue
                }
                assert false, "${name}='${value}' was not refused"
            }
        }
    }

    @Test
    void 'what was chosen reaches the shell as variables'() {
        build('density', ASKED + [TYPES: 'CSC,CSP', TESTS: 'MRR,NDRPDR', INCLUDE: '2R1CORIMIX', EXCLUDE: '9000B', CELLS: '1-3x1', FRAMES: '64B-1000f,128B-ip6,pcap:/srv/loads/web-1.pcap',
            LOSSES: '0.5', BACK_TO_BACK: '50', ENERGY: '10', STACKS: '10', NOISE_FLOOR: '0.5'])
        Map env = lines.find { it.script.startsWith(RUN) }.env
        assert env.FILTER ==
            '--suite csc-mrr --suite csc-ndrpdr --suite csp-mrr --suite csp-ndrpdr --include 2R1CORIMIX --exclude 9000B'
        assert [env.CELLS, env.FRAMES, env.SEARCH, env.TESTBED] == ['1-3x1', '64B-1000f,128B-ip6,pcap:/srv/loads/web-1.pcap', 'ladder', 'topologies/one.yaml']
        assert [env.LOSSES, env.BACK_TO_BACK, env.ENERGY, env.STACKS, env.NOISE_FLOOR] == ['0.5', '50', '10', '10', '0.5']
        assert env.REASON == 'a look at density; https://jenkins.example/job/density/7/'
    }

    @Test
    void 'another build of VPP is installed before the doctor looks'() {
        assert build('patch', ASKED + [VPP: '/opt/vpp/change-4711']) == 'SUCCESS'
        assert order('one')[0..3] == [RESERVE, 'jenkins/install-vpp ', DOCTOR, RUN]
        assert lines.find { it.script.startsWith(RUN) }.env.TESTBED == 'results/one/testbed.yaml'
        assert lines.find { it.script.startsWith(RELEASE) }.env.TOPOLOGY == 'topologies/one.yaml'
    }

    @Test
    void 'where the runner keeps a history, a night is added to it and gated'() {
        env.CSIT_HISTORY = '/srv/history'
        for (List expected in [[0, 'SUCCESS'], [1, 'UNSTABLE'], [2, 'FAILURE']]) {
            lines.clear()
            files.clear()
            answers = [(GATE): [expected[0]]]
            assert build('density', ASKED) == expected[1]
            List judged = expected[0] == 2 ? [GATE] : [GATE, TREND]
            assert order('one')[-3 - judged.size()..-1] == [RELEASE, REPORT, IMPORT] + judged
            assert lines.find { it.script.startsWith(GATE) }.env.CSIT_HISTORY == '/srv/history'
            assert stagesOf('one')[-1 - judged.size()..-1] == (expected[0] == 2 ? ['Gate'] : ['Gate', 'Trend']) + ['Archive']
        }
        answers = [(TREND): [1]]
        assert build('density', ASKED) == 'FAILURE', 'a history that cannot be read in full'
        assert archived*.toString().contains('results/one/gate.xml')
    }

    @Test
    void 'a fall does not hide that tests failed, and a night of which nothing was measured is not gated'() {
        env.CSIT_HISTORY = '/srv/history'
        answers = [(OUTCOME): [2], (GATE): [1]]
        assert build('density', ASKED) == 'FAILURE'
        lines.clear()
        files.clear()
        answers = [(DOCTOR): [1]]
        assert build('density', ASKED) == 'FAILURE'
        assert !order('one').contains(GATE)
    }

    @Test
    void 'a patch is held against the nights and is none'() {
        env.CSIT_HISTORY = '/srv/history'
        assert build('patch', ASKED + [VPP: '/opt/vpp/change-4711']) == 'SUCCESS'
        assert order('one').last() == REPORT, 'there are no nights yet'
        lines.clear()
        files['/srv/history'] = ''
        answers = [(GATE): [1]]
        assert build('patch', ASKED + [VPP: '/opt/vpp/change-4711']) == 'UNSTABLE'
        assert order('one')[-2..-1] == [REPORT, GATE]
    }

    @Test
    void 'a night with a budget is resumed once, and lack of time is no fault'() {
        Map night = ASKED + [BUDGET: '8', HOURS: '10', STUDIES: 'OUTAGE']
        List around = [[RESERVE, DOCTOR, NIGHT], [CLEANUP, RELEASE, REPORT]]
        for (Map each in [
            [answers: [0], result: 'SUCCESS'], [answers: [4], result: 'SUCCESS'], [answers: [1], result: 'UNSTABLE'], [answers: [2], result: 'FAILURE'],
            [answers: [3], resumed: [0], result: 'SUCCESS'], [answers: [3], resumed: [3], result: 'FAILURE'],
        ]) {
            lines.clear()
            files.clear()
            published.clear()
            answers = [(NIGHT): each.answers, (RESUME_NIGHT): each.resumed ?: []]
            assert build('nightly', night) == each.result
            assert order('one') == around[0] + (each.resumed == null ? [] : [CLEANUP, DOCTOR, RESUME_NIGHT]) + around[1]
            Line line = lines.find { it.script.startsWith(NIGHT) }
            assert [line.env.BUDGET, line.env.STUDIES, line.timeouts] == ['8', 'OUTAGE', [[time: 10, unit: 'HOURS']]]
            assert lines.findAll { it.script.startsWith(REPORT) }*.env*.MEASURED == ['results/one/night']
            assert lines.count { it.script.contains(EXPORT) } == 1
            assert published*.reportFiles*.toString() == ['index.html,night.html,studies.html']
        }
        env.CSIT_HISTORY = '/srv/history'
        lines.clear()
        assert build('nightly', night) == 'SUCCESS'
        assert order('one')[-3..-1] == [IMPORT, GATE, TREND]
        assert lines.find { it.script.startsWith(IMPORT) }.env.MEASURED == 'results/one/night'
    }

    @Test
    void 'a step that the gate calls starts a bisection, where the runner can install revisions'() {
        env.CSIT_HISTORY = '/srv/history'
        answers = [(GATE): [1]]
        assert build('density', ASKED) == 'UNSTABLE'
        assert started.isEmpty()
        env.CSIT_BISECT = '/srv/vpp.yaml'
        answers = [(GATE): [1]]
        assert build('density', ASKED) == 'UNSTABLE'
        assert started*.job == ['density-bisect']
        assert started[0].wait == false
        Map parameters = started[0].parameters.collectEntries { [it.name, it.value.toString()] }
        assert parameters == [TESTBEDS: 'topologies/one.yaml', STEP: '[{"cell": "CSC 1x1 1c"}]',
                              REASON: 'bisection of a step that the gate of https://jenkins.example/job/density/7/ called']
        lines.clear()
        files.clear()
        published.clear()
        assert build('bisect', parameters) == 'SUCCESS'
        assert order('one') == [RESERVE, DOCTOR, BISECT, CLEANUP, RELEASE]
        assert published*.reportName*.toString() == ['Bisection on one']
        assert files['results/one/step.json'] == parameters.STEP
        for (List expected in [[1, 'FAILURE'], [3, 'UNSTABLE'], [4, 'UNSTABLE']]) {
            lines.clear()
            answers = [(BISECT): [expected[0]]]
            assert build('bisect', parameters) == expected[1]
            assert order('one').last() == RELEASE
        }
        assert build('bisect', parameters - [STEP: parameters.STEP]) == 'FAILURE'
    }

    @Test
    void 'a regression that the trend confirms with this night starts a bisection too'() {
        env.CSIT_HISTORY = '/srv/history'
        env.CSIT_BISECT = '/srv/vpp.yaml'
        confirmed = '[{"cell": "CSP 2x1 1c"}]'
        assert build('nightly', ASKED) == 'UNSTABLE'
        assert started*.job == ['density-bisect']
        assert started[0].parameters.find { it.name == 'STEP' }.value == confirmed
        assert started[0].parameters.find { it.name == 'REASON' }.value.toString().startsWith('bisection of a step that the trend of ')
        started.clear()
        answers = [(GATE): [1]]
        assert build('nightly', ASKED) == 'UNSTABLE'
        assert started*.parameters*.find { it.name == 'STEP' }*.value == ['[{"cell": "CSC 1x1 1c"}]', confirmed]
        started.clear()
        files['/srv/history'] = ''
        assert build('patch', ASKED + [VPP: '/opt/vpp/change-4711']) == 'SUCCESS'
        assert started.isEmpty()
        env.remove('CSIT_BISECT')
        assert build('nightly', ASKED) == 'UNSTABLE'
        assert started.isEmpty()
        confirmed = '[]'
        assert build('nightly', ASKED) == 'SUCCESS'
    }

    @Test
    void 'without a history nothing is gated'() {
        assert build('density', ASKED) == 'SUCCESS'
        assert !lines.any { it.script.startsWith(IMPORT) || it.script.startsWith(GATE) || it.script.startsWith(TREND) }
    }

    @Test
    void 'a patch needs a build'() {
        assert build('patch', ASKED) == 'FAILURE'
        assert lines.isEmpty()
    }

    @Test
    void 'the nightly job takes what its job says'() {
        assert build('nightly', ASKED + [CELLS: '1x1', TESTS: 'NDRPDR,MRR']) == 'SUCCESS'
        assert crons == ['H 2 * * *']
        assert lines.find { it.script.startsWith(RUN) }.env.CELLS == '1x1'
    }

    @Test
    void 'secrets are bound where an administrator says so, and are in no line'() {
        env.CSIT_CREDENTIALS = 'lab-password:LAB_PASSWORD'
        env.CSIT_SSH_KEYS = 'lab-key'
        secrets['lab-password'] = 'hunter2'
        build('density', ASKED)
        assert lines.find { it.script.startsWith(DOCTOR) }.env.LAB_PASSWORD == 'hunter2'
        assert lines.find { it.script.startsWith(DOCTOR) }.env.SSH_AUTH_SOCK == '[lab-key]'
        for (String text in lines*.script + echoed + archived*.toString() + published*.toString()) {
            assert !text.contains('hunter2')
            assert !text.contains('LAB_PASSWORD')
            assert !text.contains('CSIT_RESERVATION')
        }
        assert !lines.any { it.script =~ /\bset -x|\benv\b|printenv/ }
    }
}
