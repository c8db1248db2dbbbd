// What every job does on its testbeds, side by side: reserve, install, doctor, run, resume, clean up, release, report, gate.
// Each `sh` is one line that a person can run by hand; README.md has the same lines in the same order.
// Values reach the shell as variables of the environment, quoted there. Secrets come from Jenkins' credentials only.
// Jenkins may restart in the middle of it: no iterator lives while a step runs.
import groovy.transform.Field

// What a value may look like. What it means is checked by the program that gets it.
@Field final Map<String, String> FORMS = [
    TESTBEDS    : /(topologies\/([\w.-]+\/)*\w[\w.-]*\.yaml)(\s+topologies\/([\w.-]+\/)*\w[\w.-]*\.yaml)*/,
    TYPES       : /(VSC|CSC|CSP)(,(VSC|CSC|CSP))*/,
    TESTS       : /(NDRPDR|MRR|LATENCY)(,(NDRPDR|MRR|LATENCY))*/,
    CELLS       : /[0-9x,{}-]+/,
    NF_SIZES    : /[0-9][0-9a-z.,+-]*/,
    NF_KINDS    : /[a-z0-9_+]*/,
    VSWITCH     : /[124](,[124])*/,
    FRAMES      : /(\w[\w-]*|pcap:[\w.\/+@=-]+)(,(\w[\w-]*|pcap:[\w.\/+@=-]+))*/,
    SEARCH      : /[a-z0-9_]+/,
    LOSSES      : /(\d{1,2}(\.\d{1,3})?)?/,
    ENERGY      : /([1-9]\d{0,2}(\.\d{1,3})?)?/,
    STACKS      : /([1-9]\d{0,2}(\.\d{1,3})?)?/,
    BACK_TO_BACK: /([1-9]\d{0,2}|1000)?/,
    NOISE_FLOOR : /(\d(\.\d{1,3})?|10)?/,
    INCLUDE     : /[\w.]*/,
    EXCLUDE     : /[\w.]*/,
    STUDIES     : /(\w+( OR \w+)*)?/,
    BUDGET      : /(\d{1,3}(\.\d{1,2})?)?/,
    STEP        : /[\w\s.,:"{}\[\]()\/+~-]*/,
    VPP         : /(\/[\w.+~-]+)*/,
    REASON      : /\S[^\r\n]{0,199}/,
    HOURS       : /[1-9]\d{0,2}/,
    WAIT        : /\d+[mh]/,
]
@Field final Map<String, String> DEFAULTS = [
    TYPES: 'VSC,CSC,CSP', TESTS: 'NDRPDR', CELLS: '{1,2,4}x{1,2,4}', NF_SIZES: '1c', NF_KINDS: '', VSWITCH: '1', FRAMES: '64B',
    SEARCH: 'ladder', LOSSES: '', BACK_TO_BACK: '', ENERGY: '', STACKS: '', NOISE_FLOOR: '',
    INCLUDE: '', EXCLUDE: '', STUDIES: '', BUDGET: '', STEP: '', VPP: '', HOURS: '12', WAIT: '2h',
]
// What `./csit outcome` ends with.
@Field final int PASSED = 0
@Field final int FAILED = 1
@Field final int UNFINISHED = 3
// What `./csit night` ends with where the time was too short for all that it had planned: no fault.
@Field final int LACKED_TIME = 4
// What `./csit bisect` ends with where no culprit is named: good and bad do not differ, or too few observations.
@Field final List<Integer> NO_CULPRIT = [3, 4]
// What `./csit gate` ends with where a cell fell.
@Field final int FELL = 1

// Measure on every testbed of TESTBEDS at the same time. A testbed that fails does not stop the others.
def testbeds(Map given) {
    Map<String, String> wanted = checked(given)
    List<String> topologies = wanted.TESTBEDS.tokenize()
    Map branches = [failFast: false]
    for (int i = 0; i < topologies.size(); i++) {
        String topology = topologies[i]  // one for each closure
        branches[nameOf(topology)] = { onRunner(topology, wanted) }
    }
    parallel branches
}

// The values as text, defaults included, each of the form it is to have.
Map<String, String> checked(Map given) {
    Map<String, String> wanted = textsOf(given, DEFAULTS)
    String fault = faultOf(wanted, FORMS)
    if (fault) {
        error fault
    }
    return wanted
}

@NonCPS
Map<String, String> textsOf(Map given, Map<String, String> defaults) {
    return (defaults + given).collectEntries { name, value -> [name, value == null ? '' : value.toString().trim()] }
}

@NonCPS
String faultOf(Map<String, String> wanted, Map<String, String> forms) {
    for (String name in forms.keySet()) {
        String text = wanted[name] ?: ''
        if (!(text ==~ forms[name]) || text.contains('..')) {
            return "${name} is '${text}', which is not of the form ${forms[name]}"
        }
    }
    List<String> names = wanted.TESTBEDS.tokenize().collect { nameOf(it) }
    return names.toSet().size() < names.size() ? "TESTBEDS has a testbed more than once: ${wanted.TESTBEDS}" : null
}

@NonCPS
String nameOf(String topology) {
    return topology.tokenize('/').last() - '.yaml'
}

// Robot's options for what cannot be said by variables of the suites.
@NonCPS
String filterOf(Map<String, String> wanted) {
    List<String> options = []
    for (String type in wanted.TYPES.tokenize(',')) {
        for (String test in wanted.TESTS.tokenize(',')) {
            options << "--suite ${type}-${test}".toString().toLowerCase()
        }
    }
    if (wanted.INCLUDE) {
        options << "--include ${wanted.INCLUDE}".toString()
    }
    if (wanted.EXCLUDE) {
        options << "--exclude ${wanted.EXCLUDE}".toString()
    }
    return options.join(' ')
}

// What the lines of shell know of one testbed.
@NonCPS
List<String> variablesOf(String topology, Map<String, String> wanted, String build) {
    String results = "results/${nameOf(topology)}"
    List variables = [
        "TOPOLOGY=${topology}",
        "TESTBED=${wanted.VPP ? results + '/testbed.yaml' : topology}",
        "RESULTS=${results}",
        "MEASURED=${results}/${wanted.BUDGET ? 'night' : 'output.xml'}",
        "FILTER=${filterOf(wanted)}",
        "LEASE=${(wanted.HOURS as int) + 1}h",
        "REASON=${wanted.REASON}; ${build}",
    ]
    for (String name in ['TYPES', 'TESTS', 'CELLS', 'NF_SIZES', 'NF_KINDS', 'VSWITCH', 'FRAMES', 'SEARCH', 'LOSSES', 'BACK_TO_BACK', 'ENERGY', 'STACKS',
                         'NOISE_FLOOR', 'STUDIES', 'BUDGET', 'VPP', 'WAIT']) {
        variables << "${name}=${wanted[name]}"
    }
    return variables*.toString()
}

// All of one testbed, on a machine that can reach it.
def onRunner(String topology, Map<String, String> wanted) {
    String name = nameOf(topology)
    String results = "results/${name}"
    node('density') {
        checkout scm
        withEnv(variablesOf(topology, wanted, env.BUILD_URL ?: 'by hand')) {
            withSecrets {
                try {
                    reservedFor(results, wanted)
                } finally {
                    published(topology, results, wanted)
                }
            }
        }
    }
}

// The credentials that an administrator names for the runner: CSIT_CREDENTIALS='id:VARIABLE id:VARIABLE' are secret texts that
// topologies refer to by `env:VARIABLE`, CSIT_SSH_KEYS='id id' are keys for an agent. The parameters of a build cannot change them.
def withSecrets(Closure body) {
    List texts = []
    List<String> pairs = (env.CSIT_CREDENTIALS ?: '').tokenize()
    for (int i = 0; i < pairs.size(); i++) {
        texts << string(credentialsId: pairs[i].tokenize(':')[0], variable: pairs[i].tokenize(':')[1])
    }
    List<String> keys = (env.CSIT_SSH_KEYS ?: '').tokenize()
    withCredentials(texts) {
        if (keys) {
            sshagent(keys) { body() }
        } else {
            body()
        }
    }
}

// The testbed is given back as soon as it is not needed, whatever happened. No `timeout` is around the release: one that ran out
// would give it a minute of grace only.
def reservedFor(String results, Map<String, String> wanted) {
    stage('Prepare') {
        sh 'rm -rf "$RESULTS" && mkdir -p "$RESULTS" && ./csit setup'
        sh './csit plan "$TOPOLOGY" --types "$TYPES" --tests "$TESTS" -v CELLS:"$CELLS" -v NF_SIZES:"$NF_SIZES" -v NF_KINDS:"$NF_KINDS" -v VSWITCH:"$VSWITCH" -v FRAMES:"$FRAMES" -v SEARCH:"$SEARCH" -v LOSSES:"$LOSSES" -v BACK_TO_BACK:"$BACK_TO_BACK" -v ENERGY:"$ENERGY" -v STACKS:"$STACKS"'
    }
    boolean isOurs = false
    try {
        stage('Reserve') {
            sh './csit reserve "$TOPOLOGY" --reason "$REASON" --lease "$LEASE" --wait "$WAIT" >"$RESULTS/reservation"'
            isOurs = true
        }
        withEnv(reservation(results)) {
            measured(results, wanted)
        }
    } finally {
        // Where the build was aborted just after the reservation, the file has it. A testbed reserved by others is not touched.
        if (isOurs || reservation(results)) {
            withEnv(reservation(results)) {
                released()
            }
        }
    }
}

// What the reservation says to the commands that come after it.
List<String> reservation(String results) {
    return fileExists("${results}/reservation") ? readFile("${results}/reservation").trim().tokenize('\n') : []
}

def measured(String results, Map<String, String> wanted) {
    if (wanted.VPP) {
        stage('Install VPP') {
            sh 'jenkins/install-vpp "$TOPOLOGY" "$VPP" "$TESTBED"'
        }
    }
    stage('Doctor') {
        sh './csit doctor "$TESTBED"'
    }
    if (wanted.STEP) {
        bisected(results, wanted)
        return
    }
    if (wanted.BUDGET) {
        budgeted(wanted)
        return
    }
    int outcome = PASSED
    timeout(time: wanted.HOURS as int, unit: 'HOURS') {
        stage('Run') {
            // Its status counts failed tests; what became of the run is in its journal.
            sh returnStatus: true, script: './csit robot -v TOPOLOGY:"$TESTBED" -v CELLS:"$CELLS" -v NF_SIZES:"$NF_SIZES" -v NF_KINDS:"$NF_KINDS" -v VSWITCH:"$VSWITCH" -v FRAMES:"$FRAMES" -v SEARCH:"$SEARCH" -v LOSSES:"$LOSSES" -v BACK_TO_BACK:"$BACK_TO_BACK" -v ENERGY:"$ENERGY" -v STACKS:"$STACKS" -v NOISE_FLOOR:"$NOISE_FLOOR" $FILTER -d "$RESULTS" --xunit xunit.xml tests/density'
            outcome = sh returnStatus: true, script: './csit outcome "$RESULTS"'
        }
        if (outcome == UNFINISHED) {
            stage('Resume') {
                sh './csit cleanup "$TOPOLOGY" --yes'
                sh './csit doctor "$TESTBED"'
                sh returnStatus: true, script: './csit robot --resume "$RESULTS"'
                outcome = sh returnStatus: true, script: './csit outcome "$RESULTS"'
            }
        }
        if (wanted.STUDIES && outcome in [PASSED, FAILED]) {
            studied()
        }
    }
    if (outcome == FAILED) {
        unstable 'tests have failed'
    } else if (outcome != PASSED) {
        error "the run did not come to its end: ./csit outcome ended with ${outcome}"
    }
}

// What stored results leave most open, in BUDGET hours; HOURS is longer.
def budgeted(Map<String, String> wanted) {
    int outcome = PASSED
    timeout(time: wanted.HOURS as int, unit: 'HOURS') {
        stage('Night') {
            sh 'mkdir -p "${CSIT_HISTORY:-$RESULTS/history}"'
            outcome = sh returnStatus: true, script: './csit night "$TESTBED" --hours "$BUDGET" --types "$TYPES" --tests "$TESTS" --cells "$CELLS" --nf-sizes "$NF_SIZES" --nf-kinds "$NF_KINDS" --vswitch "$VSWITCH" --frames "$FRAMES" --search "$SEARCH" -v LOSSES:"$LOSSES" -v BACK_TO_BACK:"$BACK_TO_BACK" -v ENERGY:"$ENERGY" -v STACKS:"$STACKS" -v NOISE_FLOOR:"$NOISE_FLOOR" --studies "$STUDIES" --data "${CSIT_HISTORY:-$RESULTS/history}" -d "$RESULTS/night"'
        }
        if (outcome == UNFINISHED) {
            stage('Resume night') {
                sh './csit cleanup "$TOPOLOGY" --yes'
                sh './csit doctor "$TESTBED"'
                outcome = sh returnStatus: true, script: './csit night --resume "$RESULTS/night"'
            }
        }
    }
    if (outcome == FAILED) {
        unstable 'tests have failed'
    } else if (!(outcome in [PASSED, LACKED_TIME])) {
        error "the night did not come to its end: ./csit night ended with ${outcome}"
    }
}

// Bisection of a step that a gate or a trend has called (STEP, what it wrote), by the specification CSIT_BISECT of the runner.
def bisected(String results, Map<String, String> wanted) {
    stage('Bisect') {
        writeFile file: "${results}/step.json", text: wanted.STEP
        int answer = PASSED
        timeout(time: wanted.HOURS as int, unit: 'HOURS') {
            answer = sh returnStatus: true, script: './csit bisect "$CSIT_BISECT" --step "$RESULTS/step.json" -d "$RESULTS/bisect"'
        }
        if (answer in NO_CULPRIT) {
            unstable 'no culprit is named: see the page of the bisection'
        } else if (answer != PASSED) {
            error "the bisection failed: it ended with ${answer}"
        }
    }
}

// Studies of tests/characterization by a tag, such as OUTAGE, beside the selection of density tests. An interrupted one is resumed once.
def studied() {
    int outcome = PASSED
    stage('Studies') {
        sh returnStatus: true, script: './csit robot -v TOPOLOGY:"$TESTBED" --include "$STUDIES" -v STACKS:"$STACKS" -v NOISE_FLOOR:"$NOISE_FLOOR" -d "$RESULTS/studies" --xunit xunit.xml tests/characterization'
        outcome = sh returnStatus: true, script: './csit outcome "$RESULTS/studies"'
    }
    if (outcome == UNFINISHED) {
        stage('Resume studies') {
            sh './csit cleanup "$TOPOLOGY" --yes'
            sh './csit doctor "$TESTBED"'
            sh returnStatus: true, script: './csit robot --resume "$RESULTS/studies"'
            outcome = sh returnStatus: true, script: './csit outcome "$RESULTS/studies"'
        }
    }
    if (outcome != PASSED) {
        unstable "studies have failed: ./csit outcome ended with ${outcome}"
    }
}

// Also when the cleanup fails: the doctor of the next build reports what was left.
def released() {
    stage('Release') {
        try {
            sh './csit cleanup "$TOPOLOGY" --yes'
        } finally {
            sh './csit release "$TOPOLOGY"'
        }
    }
}

// Pages and files of what was measured, also of a part.
def published(String topology, String results, Map<String, String> wanted) {
    String name = nameOf(topology)
    boolean isNight = fileExists("${results}/night/night.html")
    try {
        if (fileExists("${results}/bisect/bisection.html")) {
            publishHTML target: [
                reportName: "Bisection on ${name}", reportDir: "${results}/bisect", reportFiles: 'bisection.html',
                keepAll: true, alwaysLinkToLastBuild: true, allowMissing: false,
            ]
        }
        if (isNight || fileExists("${results}/output.xml")) {
            stage('Report') {
                sh './csit report "$MEASURED" -o "$RESULTS/site" --csv "$RESULTS/csv"'
                sh './csit show "$MEASURED"'
                if (isNight) {
                    // C-Dash knows a test once in a run.
                    sh 'for run in "$RESULTS"/night/*/; do ./csit export "$run" --uti -o "$RESULTS/uti/$(basename "$run")" || exit; done'
                    sh 'cp "$RESULTS/night/night.html" "$RESULTS/site/"'
                } else {
                    sh './csit export "$RESULTS/output.xml" --uti -o "$RESULTS/uti"'
                }
                if (fileExists("${results}/studies/output.xml")) {
                    sh './csit report "$RESULTS/studies/output.xml" -o "$RESULTS/site/studies.html" --csv "$RESULTS/studies/csv"'
                }
                publishHTML target: [
                    reportName: "Density of ${name}", reportDir: "${results}/site", reportFiles: 'index.html,night.html,studies.html',
                    keepAll: true, alwaysLinkToLastBuild: true, allowMissing: false,
                ]
            }
            gated(topology, results, wanted)
        }
    } finally {
        archived(results)
    }
}

// Where the runner keeps a history (CSIT_HISTORY): a night is added to it and compared with the last 14 runs on the same testbed, then its trend
// is checked. A build with a patch of VPP is compared with them too, and not added.
def gated(String topology, String results, Map<String, String> wanted) {
    if (!env.CSIT_HISTORY || (wanted.VPP && !fileExists(env.CSIT_HISTORY))) {
        return
    }
    stage('Gate') {
        if (!wanted.VPP) {
            sh './csit import "$MEASURED" --into "$CSIT_HISTORY"'
        }
        int verdict = sh returnStatus: true, script: './csit gate before=14 "$MEASURED" --data "$CSIT_HISTORY" --require 0 --junit "$RESULTS/gate.xml" --steps "$RESULTS/steps.json"'
        junit testResults: "${results}/gate.xml", allowEmptyResults: true
        if (verdict == FELL) {
            unstable 'a cell fell against the nights before: see the lines of the gate'
            if (!wanted.VPP) {
                bisectionOf(topology, "${results}/steps.json", 'gate')
            }
        } else if (verdict != PASSED) {
            error "the gate could not judge: it ended with ${verdict}"
        }
    }
    if (!wanted.VPP) {
        stage('Trend') {
            sh './csit trend "$CSIT_HISTORY" --new-with "$MEASURED" --steps "$RESULTS/trend.json"'
            if (hasSteps("${results}/trend.json")) {
                unstable 'a regression is confirmed: see the lines of the trend'
                bisectionOf(topology, "${results}/trend.json", 'trend')
            }
        }
    }
}

// What --steps writes is a list of steps.
boolean hasSteps(String file) {
    return readFile(file).contains('{')
}

// Another build finds the culprit of the largest step, where the runner can install revisions (CSIT_BISECT).
def bisectionOf(String topology, String steps, String caller) {
    if (env.CSIT_BISECT && hasSteps(steps)) {
        build job: 'density-bisect', wait: false, parameters: [
            string(name: 'TESTBEDS', value: topology), string(name: 'STEP', value: readFile(steps)),
            string(name: 'REASON', value: "bisection of a step that the ${caller} of ${env.BUILD_URL ?: 'a build'} called"),
        ]
    }
}

def archived(String results) {
    stage('Archive') {
        // Of the run, of its studies and of each run of a night.
        junit testResults: "${results}/**/xunit.xml", allowEmptyResults: true
        archiveArtifacts artifacts: "${results}/**", excludes: '**/reservation', allowEmptyArchive: true, fingerprint: true
        sh 'rm -rf "$RESULTS"'
    }
}

return this
