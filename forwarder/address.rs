//! Addresses as arguments have them, and the sockets behind them: TCP and unix alike.

use std::ffi::c_int;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Where to listen, or what to dial.
pub enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Address {
    pub fn parse(text: &str) -> Result<Address, String> {
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
    pub fn listen(&self) -> io::Result<Vec<Listener>> {
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
    pub fn taken(&self, listeners: &[Listener]) -> Address {
        let port = listeners.iter().find_map(|listener| match listener {
            Listener::Tcp(tcp) => tcp.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        });
        match self {
            Address::Unix(path) => Address::Unix(path.clone()),
            Address::Tcp { host, port: asked } => Address::Tcp { host: host.clone(), port: port.unwrap_or(*asked) },
        }
    }

    pub fn dial(&self) -> io::Result<Stream> {
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

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
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

pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub fn accept(&self) -> io::Result<Stream> {
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

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    /// Say that no more is sent. It fails where the other end is gone already, which then is no news.
    pub fn end_writing(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    pub fn descriptor(&self) -> c_int {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
