import com.lesfurets.jenkins.unit.BasePipelineTest

/** A step failed: what Jenkins calls an AbortException. */
class Failed extends RuntimeException {
    Failed(String text) { super(text) }
}

/** Somebody, or a timeout, stopped the build: a FlowInterruptedException. */
class Interrupted extends RuntimeException {
    Interrupted(String text) { super(text) }
}

/** A line of shell that the pipeline ran. */
class Line {
    String branch
    List<String> stages
    String script
    Map<String, String> env
    List<Map> timeouts

    String toString() { "${branch}: ${stages.join('/')}: ${script}" }
}

/**
 * The parts of Jenkins that the pipelines use: declarative blocks, steps, the environment, the result of the build. What the
 * lines of shell do is up to `shell`, which gets a Line and gives a status.
 */
abstract class Jenkins extends BasePipelineTest {
    List<Line> lines = []
    List<Map> published = []
    List<String> archived = []
    List<String> echoed = []
    List<String> branches = []
    Map<String, Object> declared = [:]
    List<String> crons = []
    List<Map> started = []
    Map<String, String> files = [:]
    Map<String, String> secrets = [:]
    Map<String, String> given = [:]
    Map<String, String> env = [BUILD_URL: 'https://jenkins.example/job/density/7/']
    Closure<Integer> shell = { Line line -> 0 }
    protected List<String> openStages = []
    protected List<Map> openTimeouts = []
    protected List<String> openBranches = ['']

    Jenkins() {
        scriptRoots = [System.getProperty('project.root')] as String[]
        scriptExtension = 'Jenkinsfile'
    }

    /** Run a pipeline; gives the result of the build. */
    String build(String name, Map<String, String> parameters = [:]) {
        super.setUp()
        given = parameters
        binding.setVariable('env', env)
        binding.setVariable('scm', [:])
        binding.setVariable('none', 'none')
        binding.setVariable('params', new HashMap(given))
        declarative()
        steps()
        try {
            runScript("jenkins/${name}.Jenkinsfile")
        } catch (Interrupted ignored) {
            updateBuildStatus('ABORTED')
        } catch (Failed ignored) {
            updateBuildStatus('FAILURE')
        }
        return binding.getVariable('currentBuild').result
    }

    /** What a build ran in a branch. */
    List<String> linesOf(String name) { lines.findAll { it.branch == name }*.script }

    protected void allow(String name, List<Class> types, Closure body) { helper.registerAllowedMethod(name, types, body) }

    protected def around(List stack, Object value, Closure body) {
        stack << value
        try {
            return helper.callClosure(body)
        } finally {
            stack.remove(stack.size() - 1)
        }
    }

    protected void declarative() {
        for (String block in ['pipeline', 'stages', 'steps', 'script', 'options', 'triggers']) {
            allow(block, [Closure]) { Closure body -> helper.callClosure(body) }
        }
        allow('agent', [Object], null)
        allow('label', [String], null)
        allow('timestamps', [], null)
        allow('cron', [String]) { String when -> crons << when }
        allow('parameters', [Closure]) { Closure body ->
            helper.callClosure(body)
            binding.setVariable('params', declared.collectEntries { key, value -> [key, value] } + given)
        }
        allow('choice', [Map]) { Map said -> declared[said.name] = said.choices[0] }
    }

    protected void steps() {
        allow('string', [Map]) { Map said ->
            if (said.name) { declared[said.name] = said.defaultValue }
            return said
        }
        allow('node', [String, Closure]) { String label, Closure body -> helper.callClosure(body) }
        allow('checkout', [Map], null)
        allow('load', [String]) { String path -> runScript(path) }
        allow('stage', [String, Closure]) { String name, Closure body -> around(openStages, name, body) }
        allow('timeout', [Map, Closure]) { Map limit, Closure body -> around(openTimeouts, limit, body) }
        allow('withEnv', [List, Closure]) { List pairs, Closure body -> inEnvironment(pairs, body) }
        allow('withCredentials', [List, Closure]) { List wanted, Closure body ->
            inEnvironment(wanted.collect { "${it.variable}=${secrets[it.credentialsId]}" }, body)
        }
        allow('sshagent', [List, Closure]) { List keys, Closure body -> inEnvironment(["SSH_AUTH_SOCK=${keys}"], body) }
        allow('parallel', [Map]) { Map bodies -> sideBySide(bodies) }
        allow('error', [String]) { String text -> throw new Failed(text) }
        allow('unstable', [String]) { String text -> updateBuildStatus('UNSTABLE') }
        allow('echo', [String]) { String text -> echoed << text }
        allow('fileExists', [String]) { String path -> exists(path) }
        allow('writeFile', [Map]) { Map said -> files[said.file.toString()] = said.text }
        allow('build', [Map]) { Map said -> started << said }
        allow('readFile', [String]) { String path -> content(path) }
        allow('sh', [String]) { String script ->
            if (ran(script) != 0) { throw new Failed(script) }
        }
        allow('sh', [Map]) { Map said ->
            int status = ran(said.script)
            if (status != 0 && !said.returnStatus) { throw new Failed(said.script) }
            return status
        }
        allow('publishHTML', [Map]) { Map said -> published << said.target }
        allow('junit', [Map]) { Map said -> archived << said.testResults }
        allow('archiveArtifacts', [Map]) { Map said -> archived << said.artifacts }
    }

    boolean exists(String path) { files.containsKey(path) }

    String content(String path) { files[path] }

    protected int ran(String script) {
        Line line = new Line(
            branch: openBranches.last(), stages: openStages.collect(), script: script, env: new HashMap(env), timeouts: openTimeouts.collect())
        lines << line
        return shell.call(line)
    }

    protected def inEnvironment(List pairs, Closure body) {
        Map<String, String> before = new HashMap(env)
        pairs.each { String pair -> env[pair.substring(0, pair.indexOf('='))] = pair.substring(pair.indexOf('=') + 1) }
        try {
            return helper.callClosure(body)
        } finally {
            env.clear()
            env.putAll(before)
        }
    }

    /** All branches run to their ends; then the worst of them decides. */
    protected void sideBySide(Map bodies) {
        List<Exception> raised = []
        bodies.findAll { it.key != 'failFast' }.each { name, body ->
            branches << name.toString()
            try {
                around(openBranches, name.toString(), body)
            } catch (Failed | Interrupted error) {
                raised << error
            }
        }
        def worst = raised.find { it instanceof Interrupted } ?: raised.find()
        if (worst) { throw worst }
    }
}
