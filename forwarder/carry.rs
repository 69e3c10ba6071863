//! One connection: bytes both ways between two sockets, on one thread.

use std::ffi::{c_int, c_short};
use std::io::{self, ErrorKind};
use std::ops::Range;

use crate::address::Stream;

const SMALL_BUFFER_BYTES: usize = 2 * 1024;
const LARGE_BUFFER_BYTES: usize = 512 * 1024;
/// A connection that is quiet for so long gives its large buffers back.
const QUIET_MS: c_int = 1000;
/// How often a connection on which something moved looks for more before it sleeps, letting others run each time. An
/// answer often comes at once, and to be woken takes longer than to look; without traffic nothing is spent.
const LOOKS: u32 = 20;

// The standard library links libc but has no names for these.
extern "C" {
    fn sched_yield() -> c_int;
    fn poll(sockets: *mut Wanted, count: Count, timeout_ms: c_int) -> c_int;
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

/// One direction of a connection, and what was read of it but not written yet.
struct Direction<'a> {
    from: &'a Stream,
    to: &'a Stream,
    buffer: Vec<u8>,
    waiting: Range<usize>,
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
pub fn carry(near: &Stream, far: &Stream) -> io::Result<()> {
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
