//! The broker's lock: seen where a broker or anybody else holds it, held against a JVM, given back as it was found.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use segtool::store::{BrokerLock, LockTrust, RealFs, StoreErrorKind};

use crate::support::changing::{ALL, NOW_MS, facts};
use crate::support::run_at;

/// What a broker does with `.lock` (`org.apache.kafka.server.util.FileLock`): says whether it got the lock, and keeps it until a line
/// arrives or its standard input ends.
const BROKER: &str = r#"
import java.nio.channels.*; import java.nio.file.*;
public class Broker {
  public static void main(String[] args) throws Exception {
    FileChannel channel = FileChannel.open(Path.of(args[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
    FileLock lock = channel.tryLock();
    System.out.println(lock != null ? "held" : "refused");
    System.in.read();
    if (lock != null) lock.release();
    channel.close();
  }
}
"#;

/// The same in Python, which is at hand more often.
const LOCKER: &str = "import fcntl,sys\n\
    f=open(sys.argv[1],'r+' if len(sys.argv)>2 else 'a+')\n\
    try:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB); print('held',flush=True)\n\
    except OSError: print('refused',flush=True)\n\
    sys.stdin.read(1)\n";

/// A process with the lock, or one that was refused. It ends when this value is dropped.
struct Holder {
    process: Child,
    answer: String,
}

impl Holder {
    fn start(mut command: Command) -> Option<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut answer = String::new();
        BufReader::new(process.stdout.take()?).read_line(&mut answer).ok()?;
        Some(Self { process, answer: answer.trim().to_owned() })
    }

    fn python(lock: &Path) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", LOCKER]).arg(lock);
        Self::start(command).filter(|holder| !holder.answer.is_empty())
    }

    fn jvm(classes: &Path, lock: &Path) -> Option<Self> {
        let mut command = Command::new("java");
        command.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp"]).arg(classes).arg("Broker").arg(lock);
        Self::start(command).filter(|holder| !holder.answer.is_empty())
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
        let _ = self.process.wait();
    }
}

/// The class above, compiled; nothing where there is no JDK.
fn classes() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("Broker.java");
    fs::write(&source, BROKER).unwrap();
    let compiled = Command::new("javac").arg("-d").arg(dir.path()).arg(&source).stderr(Stdio::null()).status();
    compiled.is_ok_and(|status| status.success()).then_some(dir)
}

fn lock_file(log_dir: &Path) -> PathBuf {
    log_dir.join(".lock")
}

/// Every way of changing something, on a log dir whose lock somebody else holds: refused, nothing touched.
fn assert_all_refuse(hold: &dyn Fn(&Path) -> Holder) {
    for changing in &ALL {
        let sandbox = changing.sandbox();
        let done = changing.sandbox();
        changing.run(done.path(), &["--apply"]);
        let id = fs::read_dir(done.beside("data.segtool-undo")).unwrap().next().unwrap().unwrap().file_name();
        for (log_dir, args) in [
            (sandbox.path(), changing.args(sandbox.path(), &["--apply"])),
            (sandbox.path(), changing.args(sandbox.path(), &["--output", sandbox.beside("out").to_str().unwrap()])),
            (sandbox.path(), vec!["undo".into(), "--unfinished".into(), sandbox.path().to_str().unwrap().into()]),
            (done.path(), vec!["undo".into(), id.to_str().unwrap().into(), done.path().to_str().unwrap().into()]),
        ] {
            let holder = hold(&lock_file(log_dir));
            assert_eq!(holder.answer, "held");
            let before = facts(log_dir.parent().unwrap());
            let output = run_at(NOW_MS, &args).expect_status(3);
            let named = format!("in use by process {}", holder.pid());
            assert!(output.stderr.contains(&named), "{output}");
            assert!(output.stderr.contains("hint: stop the broker first"), "{output}");
            assert_eq!(facts(log_dir.parent().unwrap()), before, "{output}");
        }
        // A plan may be asked for at any time.
        let _holder = hold(&lock_file(sandbox.path()));
        assert!(changing.run(sandbox.path(), &[]).status < 2);
    }
}

#[test]
fn a_posix_lock_of_another_process_makes_every_changing_command_refuse() {
    let probe = tempfile::NamedTempFile::new().unwrap();
    if Holder::python(probe.path()).is_none() {
        eprintln!("skipped: python3 is not here");
        return;
    }
    assert_all_refuse(&|lock| Holder::python(lock).unwrap());
}

#[test]
fn a_jvm_with_the_lock_makes_every_changing_command_refuse() {
    let Some(classes) = classes() else {
        eprintln!("skipped: no JDK is here");
        return;
    };
    assert_all_refuse(&|lock| Holder::jvm(classes.path(), lock).unwrap());
}

#[test]
fn a_jvm_cannot_take_the_lock_while_we_hold_it_and_can_afterwards() {
    let Some(classes) = classes() else {
        eprintln!("skipped: no JDK is here");
        return;
    };
    let sandbox = ALL[0].sandbox();
    fs::write(lock_file(sandbox.path()), b"").unwrap();
    let lock = BrokerLock::take(&RealFs, sandbox.path(), LockTrust::Required).unwrap();
    // A lock of the POSIX kind would go with any close() of the file.
    drop(fs::File::open(lock_file(sandbox.path())).unwrap());
    assert_eq!(Holder::jvm(classes.path(), &lock_file(sandbox.path())).unwrap().answer, "refused");
    lock.release(&RealFs).unwrap();
    assert_eq!(Holder::jvm(classes.path(), &lock_file(sandbox.path())).unwrap().answer, "held");
}

#[test]
fn the_lock_file_stays_as_it_was_found_and_goes_where_it_was_made() {
    for changing in &ALL {
        let sandbox = changing.sandbox();
        changing.run(sandbox.path(), &["--apply"]);
        assert!(!lock_file(sandbox.path()).exists(), "{}", changing.name);

        let sandbox = changing.sandbox();
        fs::write(lock_file(sandbox.path()), b"").unwrap();
        if is_root() {
            std::os::unix::fs::chown(lock_file(sandbox.path()), Some(1001), Some(1002)).unwrap();
        }
        let before = fs::metadata(lock_file(sandbox.path())).unwrap();
        changing.run(sandbox.path(), &["--apply"]);
        let after = fs::metadata(lock_file(sandbox.path())).unwrap();
        let known = |stat: &fs::Metadata| (stat.ino(), stat.uid(), stat.gid(), stat.mode(), stat.mtime_nsec());
        assert_eq!(known(&before), known(&after), "{}", changing.name);
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|stat| stat.uid() == 0)
}

#[test]
fn a_lock_file_that_is_made_belongs_to_whom_the_log_dir_belongs() {
    if !is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let sandbox = ALL[0].sandbox();
    std::os::unix::fs::chown(sandbox.path(), Some(1001), Some(1002)).unwrap();
    let lock = BrokerLock::take(&RealFs, sandbox.path(), LockTrust::Required).unwrap();
    let stat = fs::metadata(lock_file(sandbox.path())).unwrap();
    assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o7777), (1001, 1002, 0o644));
    lock.release(&RealFs).unwrap();
    assert!(!lock_file(sandbox.path()).exists());
}

#[test]
fn a_lock_on_a_file_that_lost_its_name_counts_no_more() {
    let sandbox = ALL[0].sandbox();
    fs::write(lock_file(sandbox.path()), b"").unwrap();
    let lock = BrokerLock::take(&RealFs, sandbox.path(), LockTrust::Required).unwrap();
    lock.check(&RealFs).unwrap();
    // A broker that stops removes the file; the next one makes another.
    fs::remove_file(lock_file(sandbox.path())).unwrap();
    assert!(lock.check(&RealFs).is_err());
    fs::write(lock_file(sandbox.path()), b"").unwrap();
    let error = lock.check(&RealFs).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::InUse { .. }) && error.is_refusal(), "{error}");
}

#[test]
fn who_has_a_file_of_the_log_dir_open_for_writing_is_named_lock_or_not() {
    let script = "import sys; f=open(sys.argv[1],'r+b'); print('held',flush=True); sys.stdin.read(1)";
    let sandbox = ALL[0].sandbox();
    let log = sandbox.join("orders-0/00000000000000000000.log");
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(&log);
    let Some(holder) = Holder::start(command).filter(|holder| holder.answer == "held") else {
        eprintln!("skipped: python3 is not here");
        return;
    };
    let before = facts(sandbox.path());
    let output = ALL[0].run(sandbox.path(), &["--apply"]).expect_status(3);
    assert!(output.stderr.contains(&format!("open for writing by process {}", holder.pid())), "{output}");
    assert_eq!(facts(sandbox.path()), before);
    drop(holder);
    ALL[0].run(sandbox.path(), &["--apply"]).expect_status(0);
}

#[test]
fn a_file_system_whose_locks_nobody_knows_needs_the_users_word() {
    // The process file system is as good as any other that is not on the list, and nothing can be written there.
    let log_dir = PathBuf::from(format!("/proc/{}", std::process::id()));
    let error = BrokerLock::take(&RealFs, &log_dir, LockTrust::Required).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::UntrustedLock { .. }) && error.is_refusal(), "{error}");
    let error = BrokerLock::take(&RealFs, &log_dir, LockTrust::BrokerIsStopped).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Io { .. }), "{error}");
}

/// Somebody takes and gives back the lock all the time, as brokers that start and stop, and removes the file in the end: whoever has
/// the lock finds that nothing in the log dir changes meanwhile.
const RESTLESS: &str = r"
import fcntl,os,sys,time,random
root=sys.argv[1]; path=os.path.join(root,'.lock'); random.seed(int(sys.argv[2])); held=0
def tree():
  return sorted((d,f,os.lstat(os.path.join(d,f)).st_ino) for d,_,fs in os.walk(root) for f in fs)
end=time.time()+float(sys.argv[3])
while time.time()<end:
  f=open(path,'a+')
  try: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)
  except OSError: f.close(); time.sleep(random.random()*0.002); continue
  if os.path.exists(path) and os.fstat(f.fileno()).st_ino==os.stat(path).st_ino:
    try:
      a=tree(); time.sleep(random.random()*0.004); b=tree()
    except OSError as e: print('changed under the lock',e); sys.exit(1)
    if a!=b: print('changed under the lock',set(a)^set(b)); sys.exit(1)
    held+=1
    if random.random()<0.5: os.remove(path)
  fcntl.lockf(f,fcntl.LOCK_UN); f.close(); time.sleep(random.random()*0.006)
print('held',held)
";

#[test]
#[ignore = "a race of half a minute"]
fn races_for_the_lock_are_never_won_by_both() {
    let (mut runs, mut refused) = (0, 0);
    let sandbox = ALL[0].sandbox();
    let mut command = Command::new("python3");
    command.args(["-c", RESTLESS]).arg(sandbox.path()).args(["1", "30"]).stdout(Stdio::piped());
    let Ok(mut other) = command.spawn() else {
        eprintln!("skipped: python3 is not here");
        return;
    };
    while other.try_wait().unwrap().is_none() {
        let output = run_at(NOW_MS + runs * 1000, ALL[0].args(sandbox.path(), &["--apply"]));
        runs += 1;
        match output.status {
            0 => {
                let undo_dir = sandbox.beside("data.segtool-undo");
                let id = fs::read_dir(undo_dir).unwrap().next().unwrap().unwrap().file_name();
                let args = ["undo", id.to_str().unwrap(), sandbox.path().to_str().unwrap()];
                while other.try_wait().unwrap().is_none() && run_at(NOW_MS, args).status != 0 {}
            }
            3 => refused += 1,
            status => panic!("{status}: {output}"),
        }
    }
    let mut said = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut said).unwrap();
    eprintln!("{runs} runs, {refused} refused; the other: {said}");
    assert!(said.starts_with("held "), "{said}");
    assert!(runs > refused && refused > 0, "{runs} {refused}");
}
