//! Kafka's jars and a JVM.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The versions whose rules were recorded and which need no ZooKeeper.
pub(crate) const VERSIONS: [&str; 2] = ["4.4.0", "3.9.1"];

/// Whether there is no JDK or no Maven; then says on stderr that the test was skipped.
pub(crate) fn is_missing() -> bool {
    let answers = |program: &str, flag: &str| {
        Command::new(program)
            .arg(flag)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|end| end.success())
    };
    let missing = !answers("javac", "-version") || !answers("mvn", "-version");
    if missing {
        let test = std::thread::current();
        eprintln!("skipped: no JDK or no Maven for {}", test.name().unwrap_or("a test"));
    }
    missing
}

/// The directory with all jars of a Kafka version: broker, tools, clients. Fetched with Maven when they are not there yet.
pub(crate) fn jars(version: &str) -> PathBuf {
    static DONE: OnceLock<Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>>> = OnceLock::new();
    let once = {
        let mut versions = DONE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        versions.entry(version.to_owned()).or_default().clone()
    };
    once.get_or_init(|| fetch_once(version)).clone()
}

fn fetch_once(version: &str) -> PathBuf {
    let parent = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kafka");
    let target = parent.join(version);
    if target.is_dir() {
        return target;
    }
    fs::create_dir_all(&parent).unwrap();
    let fresh = tempfile::tempdir_in(&parent).unwrap();
    let pom = fresh.path().join("pom.xml");
    fs::write(&pom, project(version)).unwrap();
    let jars = fresh.path().join("jars");
    let output = Command::new("mvn")
        .args(["-q", "-B", "-ntp", "dependency:copy-dependencies", "-DincludeScope=runtime", "-f"])
        .arg(&pom)
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "maven could not fetch Kafka {version}:\n{said}");
    for entry in fs::read_dir(&jars).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // One logger only: the simple one, which writes to a stream.
        if ["slf4j-reload4j", "slf4j-log4j12", "log4j-slf4j"].iter().any(|logger| name.starts_with(logger)) {
            fs::remove_file(path).unwrap();
        }
    }
    // Another process may have been faster; its jars are as good.
    if fs::rename(&jars, &target).is_err() {
        assert!(target.is_dir());
    }
    target
}

/// A project that depends on the broker, the tools and a logger.
fn project(version: &str) -> String {
    let dependency = |(group, artifact, version): (&str, &str, &str)| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        )
    };
    let kafka = "org.apache.kafka";
    let all =
        [(kafka, "kafka_2.13", version), (kafka, "kafka-tools", version), ("org.slf4j", "slf4j-simple", "1.7.36")];
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>segtool</groupId><artifactId>interop</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>"#,
        all.map(dependency).concat()
    )
}

/// A JVM of modest size with a Kafka version on its class path; the logger writes to stdout at the given level.
pub(crate) fn java(version: &str, log_level: &str) -> Command {
    let mut command = Command::new("java");
    command
        .args([
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
        ])
        .arg("-Dorg.slf4j.simpleLogger.logFile=System.out")
        .arg(format!("-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"))
        .arg("-cp")
        .arg(jars(version).join("*"))
        .stdin(Stdio::null());
    command
}

/// Compiles and runs one Java source file of this directory; its standard output.
#[track_caller]
pub(crate) fn run_java<S: AsRef<std::ffi::OsStr>>(version: &str, source: &str, args: &[S]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/interop").join(source);
    let output = java(version, "off").arg(path).args(args).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{source} on Kafka {version}: {}\n{stdout}\n{stderr}", output.status);
    stdout
}
