// What every job does on its testbeds, side by side, by the steps of jenkins/build, which a person can run by hand. No value of a
// parameter is in a line of shell: steps read them from the environment. Secrets come from Jenkins' credentials only.
// Jenkins may restart in the middle of it: no iterator lives while a step runs.

// A testbed that fails does not stop the others.
def testbeds() {
    List<String> topologies = params.TESTBEDS.tokenize()
    Map branches = [failFast: false]
    for (int i = 0; i < topologies.size(); i++) {
        String topology = topologies[i]  // one for each closure
        if (!(topology ==~ /topologies\/([\w-][\w.-]*\/)*\w[\w.-]*\.yaml/) || branches.containsKey(nameOf(topology))) {
            error "TESTBEDS: '${topology}' is no topologies/NAME.yaml, or is named twice"
        }
        branches[nameOf(topology)] = { onRunner(topology) }
    }
    if (!(params.HOURS ==~ /[1-9]\d?/)) {
        error "HOURS: '${params.HOURS}' is no number from 1 to 99"
    }
    parallel branches
}

@NonCPS
String nameOf(String topology) {
    return topology.tokenize('/').last() - '.yaml'
}

// All of one testbed, on a machine that can reach it.
def onRunner(String topology) {
    String results = "results/${nameOf(topology)}"
    node('density') {
        checkout scm
        withEnv(["TOPOLOGY=${topology}"]) {
            withSecrets {
                try {
                    reservedFor()
                } finally {
                    try {
                        published(topology, results)
                    } finally {
                        junit testResults: "${results}/**/xunit.xml,${results}/gate.xml", allowEmptyResults: true
                        archiveArtifacts artifacts: "${results}/**", excludes: '**/reservation', allowEmptyArchive: true, fingerprint: true
                        sh 'jenkins/build clean'
                    }
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
    withCredentials(texts) {
        if (env.CSIT_SSH_KEYS) {
            sshagent(env.CSIT_SSH_KEYS.tokenize()) { body() }
        } else {
            body()
        }
    }
}

// The testbed is given back as soon as it is not needed, whatever happened. No `timeout` is around the release: one that ran out
// would give it a minute of grace only. Where the build was aborted just after the reservation, its file has it.
def reservedFor() {
    stage('Prepare') { sh 'jenkins/build prepare' }
    try {
        stage('Reserve') { sh 'jenkins/build reserve' }
        timeout(time: params.HOURS as int, unit: 'HOURS') {
            stage('Measure') { judged sh(returnStatus: true, script: 'jenkins/build measure') }
        }
    } finally {
        stage('Release') { sh 'jenkins/build release' }
    }
}

// Pages and files of what was measured, also of a part.
def published(String topology, String results) {
    stage('Report') {
        sh 'jenkins/build report'
        publishHTML target: [
            reportName: "Density of ${nameOf(topology)}", reportDir: "${results}/site", reportFiles: 'index.html,bisection.html',
            keepAll: true, alwaysLinkToLastBuild: true, allowMissing: true,
        ]
    }
    stage('Gate') {
        judged sh(returnStatus: true, script: 'jenkins/build gate')
        bisectionOf(topology, "${results}/steps.json")
        bisectionOf(topology, "${results}/trend.json")
    }
}

void judged(int status) {
    if (status == 1) {
        unstable 'tests or cells have failed, or no culprit is named: see the log of this step'
    } else if (status != 0) {
        error "the step ended with ${status}"
    }
}

// Another build finds the culprit of the largest step, where the runner can install revisions (CSIT_BISECT).
def bisectionOf(String topology, String steps) {
    if (env.CSIT_BISECT && !params.VPP && fileExists(steps) && readFile(steps).contains('{')) {
        build job: 'density-bisect', wait: false, parameters: [
            string(name: 'TESTBEDS', value: topology), string(name: 'STEP', value: readFile(steps)),
            string(name: 'REASON', value: "bisection of a step of ${env.BUILD_URL ?: 'a build'}"),
        ]
    }
}

return this
