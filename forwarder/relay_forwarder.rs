//! Carries bytes from where agents dial to where relay and gateway are.
//!
//!     relay-forwarder LISTEN=TARGET [LISTEN=TARGET ...]
//!
//! Each side is `host:port`, `[::1]:port` or `unix:/path`. Once every pair listens, one line a pair comes on standard
//! output: `ready LISTEN=TARGET`, LISTEN with the port that was taken where 0 was asked for. A target need not be up:
//! it is looked up and dialled anew for each connection. SIGTERM and SIGINT end it with 0, other ends are 1 (it can't
//! listen) and 2 (wrong arguments), with a line on standard error.
//!
//! One thread a connection waits for both sides: each end can close its half alone, and a side that doesn't read holds
//! up nothing but what is for it. Connections, stacks and buffers are bounded, and buffers are large only while much
//! flows. Only the standard library, so that plain `rustc` builds it anywhere, static or not.

mod address;
mod carry;

use std::ffi::{c_char, c_int, CString};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use address::{Address, Listener, Stream, DIAL_TIMEOUT};
use carry::carry;

const USAGE: &str = "usage: relay-forwarder LISTEN=TARGET [LISTEN=TARGET ...]; each side is host:port or unix:/path";

/// Connections of one pair at a time. More wait in the kernel's queue, and no pair starves another.
const MOST_CONNECTIONS: usize = 1000;
/// A resolver, called on a connection's own thread, wants the most of it; what isn't touched costs nothing.
const STACK_BYTES: usize = 256 * 1024;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// At most one complaint in this time: a target that is down must fill no disk.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(1);

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// No descriptor is left: in the system, in this process.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

// The standard library links libc but has no names for these.
extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn unlink(path: *const c_char) -> c_int;
    fn _exit(code: c_int) -> !;
}

static OWN_SOCKETS: OnceLock<Vec<CString>> = OnceLock::new();
static LAST_COMPLAINT: Mutex<Option<Instant>> = Mutex::new(None);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let pairs: Result<Vec<Pair>, String> = arguments.iter().map(|text| Pair::parse(text)).collect();
    let pairs = match pairs {
        Ok(pairs) if !pairs.is_empty() => pairs,
        Ok(_) => return fail(2, USAGE),
        Err(what) => return fail(2, &format!("{what}; {USAGE}")),
    };
    match serve(pairs) {
        Ok(()) => loop {
            thread::park();
        },
        Err(what) => fail(1, &what),
    }
}

fn fail(code: u8, what: &str) -> ExitCode {
    say(what);
    ExitCode::from(code)
}

/// A line on standard error. Unlike `eprintln!` it doesn't panic where nobody reads it.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "relay-forwarder: {what}");
}

/// Listen for every pair, then say so; the accepting threads go on.
fn serve(pairs: Vec<Pair>) -> Result<(), String> {
    let mut listening = Vec::new();
    for pair in pairs {
        let listeners = pair.listen.listen().map_err(|error| format!("can't listen on {}: {error}", pair.listen))?;
        listening.push((pair, listeners));
    }
    end_cleanly(listening.iter().map(|(pair, _)| pair));
    let mut ready = String::new();
    for (pair, listeners) in listening {
        ready += &format!("ready {}={}\n", pair.listen.taken(&listeners), pair.target);
        let pair = Arc::new(pair);
        for listener in listeners {
            let pair = Arc::clone(&pair);
            spawn(move || accept_all(&listener, &pair)).map_err(|error| format!("can't start a thread: {error}"))?;
        }
    }
    // Nobody reading is no reason to stop.
    let _ = io::stdout().write_all(ready.as_bytes()).and_then(|()| io::stdout().flush());
    Ok(())
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).map(drop)
}

/// End with 0 on SIGTERM and SIGINT, without leaving sockets in the file system.
fn end_cleanly<'a>(pairs: impl Iterator<Item = &'a Pair>) {
    let paths = pairs.filter_map(|pair| match &pair.listen {
        Address::Unix(path) => CString::new(path.as_os_str().as_bytes()).ok(),
        Address::Tcp { .. } => None,
    });
    let _ = OWN_SOCKETS.set(paths.collect());
    // SAFETY: the handler calls nothing but unlink and _exit, both of which POSIX allows in a handler.
    unsafe {
        signal(SIGTERM, end);
        signal(SIGINT, end);
    }
}

extern "C" fn end(_: c_int) {
    for path in OWN_SOCKETS.get().into_iter().flatten() {
        // SAFETY: the path is a C string that lives as long as the process.
        unsafe { unlink(path.as_ptr()) };
    }
    // SAFETY: it only ends the process.
    unsafe { _exit(0) }
}

struct Pair {
    listen: Address,
    target: Address,
    connections: Mutex<usize>,
    ended: Condvar,
}

impl Pair {
    fn parse(text: &str) -> Result<Pair, String> {
        let (listen, target) = text.split_once('=').ok_or_else(|| format!("{text:?} is no LISTEN=TARGET"))?;
        let (listen, target) = (Address::parse(listen)?, Address::parse(target)?);
        Ok(Pair { listen, target, connections: Mutex::new(0), ended: Condvar::new() })
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wait until there is room for one more connection, and take it.
    fn enter(self: &Arc<Self>) -> Place {
        let full = |count: &mut usize| *count >= MOST_CONNECTIONS;
        let mut count = self.ended.wait_while(self.count(), full).unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        Place(Arc::clone(self))
    }
}

/// One connection's place in its pair, free again when dropped.
struct Place(Arc<Pair>);

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.ended.notify_one();
    }
}

/// Accept for ever. A connection is taken out of the kernel's queue only when the descriptor of its other side is sure:
/// where descriptors or threads run out, clients wait instead of being cut off.
fn accept_all(listener: &Listener, pair: &Arc<Pair>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let place = pair.enter();
        let accepted = UnixDatagram::unbound().and_then(|spare| {
            let near = listener.accept()?;
            spawn(move || connect(&near, spare, place))
        });
        match accepted {
            Ok(()) => pause = FIRST_PAUSE,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(error) => {
                complain(&format!("can't accept on {}: {error}", pair.listen));
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Dial the target and carry bytes until the connection is over. Where either side fails, both end here.
fn connect(near: &Stream, spare: UnixDatagram, place: Place) {
    drop(spare);
    let target = &place.0.target;
    match dial_patiently(target) {
        // How it ended is for the two ends to know: each sees what the other did.
        Ok(far) => drop(carry(near, &far)),
        Err(error) => complain(&format!("can't reach {target}: {error}")),
    }
}

/// `dial`, again where another thread was quicker to take the last descriptor.
fn dial_patiently(target: &Address) -> io::Result<Stream> {
    let since = Instant::now();
    loop {
        match target.dial() {
            Err(error) if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) && since.elapsed() < DIAL_TIMEOUT => {
                thread::sleep(FIRST_PAUSE);
            }
            other => return other,
        }
    }
}

/// Tell what went wrong, unless something was told just now.
fn complain(what: &str) {
    let mut last = LAST_COMPLAINT.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|told| told.elapsed() >= BETWEEN_COMPLAINTS) {
        *last = Some(Instant::now());
        say(what);
    }
}
