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

use std::ffi::{c_char, c_int, c_short, CString};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: relay-forwarder LISTEN=TARGET [LISTEN=TARGET ...]; each side is host:port or unix:/path";

/// Connections of one pair at a time. More wait in the kernel's queue, and no pair starves another.
const MOST_CONNECTIONS: usize = 1000;
/// A resolver, called on a connection's own thread, wants the most of it; what isn't touched costs nothing.
const STACK_BYTES: usize = 256 * 1024;
const SMALL_BUFFER_BYTES: usize = 2 * 1024;
const LARGE_BUFFER_BYTES: usize = 256 * 1024;
/// A connection that is quiet for so long gives its large buffers back.
const QUIET_MS: c_int = 1000;
/// How often a connection on which something moved looks for more before it sleeps, letting others run each time. An
/// answer often comes at once, and to be woken takes longer than to look; without traffic nothing is spent.
const LOOKS: u32 = 20;
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
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
    fn sched_yield() -> c_int;
    fn poll(sockets: *mut Wanted, count: Count, timeout_ms: c_int) -> c_int;
    fn unlink(path: *const c_char) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// `struct pollfd`, and what `poll` knows of its states; the same on every system with a `poll`.
#[repr(C)]
struct Wanted {
    socket: c_int,
    events: c_short,
    happened: c_short,
}
const READABLE: c_short = 1;
const WRITABLE: c_short = 4;
#[cfg(target_os = "linux")]
type Count = std::ffi::c_ulong;
#[cfg(not(target_os = "linux"))]
type Count = std::ffi::c_uint;

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

enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Address {
    fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let absolute = path.starts_with('/');
            return if absolute {
                Ok(Address::Unix(path.into()))
            } else {
                Err(format!("{text:?} has no absolute path"))
            };
        }
        let wrong = || format!("{text:?} is neither host:port nor unix:/path");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        match port.parse() {
            Ok(port) if !host.is_empty() => Ok(Address::Tcp { host: host.into(), port }),
            _ => Err(wrong()),
        }
    }

    /// Listeners on every address that the name has here: clients of `localhost` may try any of them.
    fn listen(&self) -> io::Result<Vec<Listener>> {
        let (host, port) = match self {
            Address::Unix(path) => return Ok(vec![Listener::Unix(listen_unix(path)?)]),
            Address::Tcp { host, port } => (host.as_str(), *port),
        };
        let mut listeners: Vec<Listener> = Vec::new();
        let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
        let mut port = port;
        for mut address in (host, port).to_socket_addrs()? {
            address.set_port(port);
            match TcpListener::bind(address) {
                Ok(listener) => {
                    port = listener.local_addr()?.port();
                    listeners.push(Listener::Tcp(listener));
                }
                // Someone else there would get a part of our clients.
                Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error),
                // A machine without IPv6 may still call ::1 localhost.
                Err(error) => failure = error,
            }
        }
        if listeners.is_empty() {
            Err(failure)
        } else {
            Ok(listeners)
        }
    }

    /// The address with the port that its listeners took.
    fn taken(&self, listeners: &[Listener]) -> Address {
        let port = listeners.iter().find_map(|listener| match listener {
            Listener::Tcp(tcp) => tcp.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        });
        match self {
            Address::Unix(path) => Address::Unix(path.clone()),
            Address::Tcp { host, port: asked } => Address::Tcp { host: host.clone(), port: port.unwrap_or(*asked) },
        }
    }

    fn dial(&self) -> io::Result<Stream> {
        let (host, port) = match self {
            Address::Unix(path) => return UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp { host, port } => (host.as_str(), *port),
        };
        let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, DIAL_TIMEOUT) {
                Ok(stream) => return stream.set_nodelay(true).map(|()| Stream::Tcp(stream)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
            Address::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(out, "{host}:{port}"),
        }
    }
}

/// A socket at the path, in place of one that nobody listens on any more.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let error = match UnixListener::bind(path) {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    let stale = error.kind() == ErrorKind::AddrInUse
        && fs::symlink_metadata(path)?.file_type().is_socket()
        && UnixStream::connect(path).is_err_and(|refused| refused.kind() == ErrorKind::ConnectionRefused);
    if !stale {
        return Err(error);
    }
    fs::remove_file(path)?;
    UnixListener::bind(path)
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    /// Say that no more is sent. It fails where the other end is gone already, which then is no news.
    fn end_writing(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn descriptor(&self) -> c_int {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
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

/// One direction of a connection, and what was read of it but not written yet.
struct Direction<'a> {
    from: &'a Stream,
    to: &'a Stream,
    buffer: Vec<u8>,
    waiting: std::ops::Range<usize>,
    over: bool,
}

impl<'a> Direction<'a> {
    fn new(from: &'a Stream, to: &'a Stream) -> Self {
        Direction { from, to, buffer: vec![0; SMALL_BUFFER_BYTES], waiting: 0..0, over: false }
    }

    fn wants_to_read(&self) -> bool {
        !self.over && self.waiting.is_empty()
    }

    fn wants_to_write(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn is_large(&self) -> bool {
        self.buffer.len() > SMALL_BUFFER_BYTES
    }

    /// Read once and write what came, as far as the sockets let it. Whether anything moved.
    fn advance(&mut self) -> io::Result<bool> {
        let mut moved = false;
        if self.wants_to_read() {
            match self.from.read(&mut self.buffer) {
                Ok(0) => {
                    self.over = true;
                    self.to.end_writing();
                }
                Ok(filled) => self.waiting = 0..filled,
                Err(error) if is_early(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
            moved = true;
        }
        let filled_whole = self.waiting == (0..self.buffer.len());
        while self.wants_to_write() {
            match self.to.write(&self.buffer[self.waiting.clone()]) {
                Ok(written) => self.waiting.start += written,
                Err(error) if is_early(&error) => return Ok(moved),
                Err(error) => return Err(error),
            }
            moved = true;
        }
        if filled_whole && self.buffer.len() < LARGE_BUFFER_BYTES {
            self.buffer = vec![0; self.buffer.len() * 2];
        }
        Ok(moved)
    }

    fn shrink(&mut self) {
        if self.is_large() && self.waiting.is_empty() {
            self.buffer = vec![0; SMALL_BUFFER_BYTES];
        }
    }
}

/// Whether a socket is only not ready yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Carry bytes both ways until each side has said that it sends no more, or one fails.
fn carry(near: &Stream, far: &Stream) -> io::Result<()> {
    near.set_nonblocking()?;
    far.set_nonblocking()?;
    let mut there = Direction::new(near, far);
    let mut back = Direction::new(far, near);
    let mut looks = 0;
    while !(there.over && back.over) {
        if there.advance()? | back.advance()? {
            looks = LOOKS;
        } else if looks > 0 {
            looks -= 1;
            // SAFETY: it touches nothing of ours.
            unsafe { sched_yield() };
        } else if !sleep(near, far, &there, &back)? {
            there.shrink();
            back.shrink();
        }
    }
    Ok(())
}

/// Sleep until something can move. Whether it can: false after a time without, if a large buffer could be given back.
fn sleep(near: &Stream, far: &Stream, there: &Direction<'_>, back: &Direction<'_>) -> io::Result<bool> {
    let mut sides = [wanted(near, there, back), wanted(far, back, there)];
    let timeout_ms = if there.is_large() || back.is_large() { QUIET_MS } else { -1 };
    // SAFETY: the array outlives the call, and its length is given.
    let count = unsafe { poll(sides.as_mut_ptr(), 2, timeout_ms) };
    if count >= 0 {
        return Ok(count > 0);
    }
    let error = io::Error::last_os_error();
    if is_early(&error) {
        Ok(true)
    } else {
        Err(error)
    }
}

/// What to wait for at a side: that more comes where that can be taken, that it takes what is left for it.
fn wanted(side: &Stream, outward: &Direction<'_>, inward: &Direction<'_>) -> Wanted {
    let readable = if outward.wants_to_read() { READABLE } else { 0 };
    let writable = if inward.wants_to_write() { WRITABLE } else { 0 };
    let events = readable | writable;
    // A side of which nothing is wanted is left out: its end would be told again and again.
    Wanted { socket: if events == 0 { -1 } else { side.descriptor() }, events, happened: 0 }
}

/// Tell what went wrong, unless something was told just now.
fn complain(what: &str) {
    let mut last = LAST_COMPLAINT.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|told| told.elapsed() >= BETWEEN_COMPLAINTS) {
        *last = Some(Instant::now());
        say(what);
    }
}
