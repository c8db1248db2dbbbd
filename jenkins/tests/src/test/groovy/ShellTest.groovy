import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths

import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

/** The lines of the pipelines in a real shell, on a simulated testbed. */
class ShellTest extends Jenkins {
    static final Map ASKED = [
        REASON: 'a test; with "quotes" and $(shell)', TYPES: 'CSC,CSP', TESTS: 'MRR', CELLS: '1-6x1', SEARCH: 'quick', HOURS: '1',
    ]
    @Rule
    public TemporaryFolder temporary = new TemporaryFolder()
    Path workspace
    /** The branch whose runs are killed after their first tests. */
    String killed = ''

    @Before
    void prepare() {
        Path project = Paths.get(System.getProperty('project.root')).toRealPath()
        workspace = temporary.root.toPath()
        for (String name in ['csit', 'jenkins', 'resources', 'tests']) {
            Files.createSymbolicLink(workspace.resolve(name), project.resolve(name))
        }
        Path topologies = Files.createDirectory(workspace.resolve('topologies'))
        String sim = project.resolve('topologies/sim.yaml').text
        topologies.resolve('one.yaml').text = sim.replace('name: sim', 'name: one')
        shell = { Line line -> inShell(line) }
    }

    @Override
    boolean exists(String path) { Files.exists(workspace.resolve(path)) }  // an absolute path stays one

    @Override
    String content(String path) { workspace.resolve(path).text }

    protected int inShell(Line line) {
        if (line.stages.last() == 'Archive') { return 0 }  // the results are to be looked at
        ProcessBuilder builder = new ProcessBuilder('sh', '-c', "exec 2>&1; ${line.script}")
        builder.directory(workspace.toFile()).redirectOutput(workspace.resolve('log').toFile())
        builder.environment().putAll(line.env)
        Process process = builder.start()
        if (line.script.startsWith('./csit robot -v') && line.branch == killed) {
            Path folder = workspace.resolve(line.env.RESULTS)
            Path journal = folder.resolve(line.stages.last() == 'Studies' ? 'studies/journal.jsonl' : 'journal.jsonl')
            while (process.alive && !hasEnded(journal)) { sleep(5) }
            process.descendants().forEach { it.destroyForcibly() }
            process.destroyForcibly()
        }
        int status = process.waitFor()
        println "${line} -> ${status}\n${workspace.resolve('log').text}"
        return status
    }

    static boolean hasEnded(Path journal) { Files.exists(journal) && journal.text.contains('"event":"finished"') }

    @Test
    void 'a run and its studies that were killed are resumed to their ends and reported'() {
        killed = 'one'
        Path history = workspace.resolve('history')
        env.CSIT_HISTORY = history.toString()
        Map extras = [LOSSES: '0.5', BACK_TO_BACK: '2', ENERGY: '1', STACKS: '', NOISE_FLOOR: '0.1', STUDIES: 'FIREWALLSANDOUTAGE OR ROUTERSANDOUTAGE']
        assert build('density', ASKED + extras + [TESTBEDS: 'topologies/one.yaml', TESTS: 'MRR']) == 'SUCCESS'
        Path results = workspace.resolve('results/one')
        List<String> studies = results.resolve('studies/journal.jsonl').readLines()
        assert studies.count { it.contains('"event":"resumed"') } == 1
        assert studies.count { it.contains('"status":"PASS"') } == 2
        assert results.resolve('site/studies.html').text.contains('kill nf-1-1')
        assert new XmlSlurper().parse(results.resolve('studies/xunit.xml').toFile()).@tests == '2'
        List<String> journal = results.resolve('journal.jsonl').readLines()
        assert journal.count { it.contains('"event":"finished"') } == 12
        assert journal.count { it.contains('"event":"resumed"') } == 1
        assert results.resolve('site/index.html').text.contains('one')
        assert results.resolve('site/message.md').text.contains('one')
        assert results.resolve('trend.json').text.trim() == '[]'
        assert new XmlSlurper().parse(results.resolve('xunit.xml').toFile()).@tests == '12'
        assert Files.isDirectory(history)
        assert new XmlSlurper().parse(results.resolve('gate.xml').toFile()).@failures == '0'
        assert results.resolve('reservation').text.startsWith('CSIT_RESERVATION=')
        assert lines*.script.count { it.startsWith('./csit release ') } == 1
    }

    @Test
    void 'a night with a budget is measured, reported, exported, kept and gated'() {
        env.CSIT_HISTORY = workspace.resolve('history').toString()
        assert build('nightly', ASKED + [TESTBEDS: 'topologies/one.yaml', CELLS: '1x1', BUDGET: '0.01']) == 'SUCCESS'
        Path results = workspace.resolve('results/one')
        assert results.resolve('site/night.html').text.contains('unseen: never measured')
        assert results.resolve('site/index.html').text.contains('one')
        assert new XmlSlurper().parse(results.resolve('night/01-unseen/xunit.xml').toFile()).@tests.toInteger() > 0
        assert Files.isDirectory(results.resolve('uti/01-unseen'))
        assert Files.isDirectory(workspace.resolve('history'))
        assert results.resolve('steps.json').text.trim() == '[]'
        assert new XmlSlurper().parse(results.resolve('gate.xml').toFile()).@failures == '0'
    }

    @Test
    void 'a selection that is wrong is told before anything is reserved'() {
        assert build('density', ASKED + [TESTBEDS: 'topologies/one.yaml', CELLS: '1xx1']) == 'FAILURE'
        assert !lines*.script.any { it.startsWith('./csit reserve ') }
    }
}
