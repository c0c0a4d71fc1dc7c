//! Write-write-read: the request pattern that Nagle's algorithm and delayed ACKs punish together.
//!
//! The client writes a header, then a body, in two calls, and waits for the reply. Nagle holds the
//! body until the header is acknowledged (RFC 896); the server, which cannot answer half a request,
//! has nothing to send and delays that acknowledgment (RFC 1122 section 4.2.3.2). Linux does so
//! once it has answered before, in "pingpong" mode, so the first exchange of a connection is quick.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::record::RecordOptions;

/// The server's port: free by construction, the namespace is new.
const SERVER_PORT: u16 = 7000;
/// Longer than any TCP timer that can fire on a healthy loopback; a guard against hanging.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Both ends of one connection over loopback, client first.
pub(crate) fn connect(options: &RecordOptions) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, SERVER_PORT))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(options.nodelay)?;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
    }
    Ok((client, server))
}

/// Header, body, then wait for the reply; over and over, until `ended`. How often.
pub(crate) fn run_client(
    mut stream: TcpStream,
    options: &RecordOptions,
    ended: &AtomicBool,
) -> io::Result<u32> {
    let header = vec![b'h'; options.header_bytes];
    let body = vec![b'b'; options.body_bytes];
    let mut reply = vec![0; options.reply_bytes];
    for done in 0..options.exchanges {
        if ended.load(Ordering::Relaxed) {
            return Ok(done);
        }
        stream.write_all(&header)?;
        stream.write_all(&body)?;
        stream.read_exact(&mut reply)?;
    }
    Ok(options.exchanges)
}

/// Reads the header as soon as it is there, then the body, then replies; over and over, until the client, which was
/// `ended`, closes.
pub(crate) fn run_server(
    mut stream: TcpStream,
    options: &RecordOptions,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut header = vec![0; options.header_bytes];
    let mut body = vec![0; options.body_bytes];
    let reply = vec![b'r'; options.reply_bytes];
    for _ in 0..options.exchanges {
        let read = stream.read_exact(&mut header).and_then(|()| stream.read_exact(&mut body));
        match read {
            Err(error)
                if error.kind() == io::ErrorKind::UnexpectedEof
                    && ended.load(Ordering::Relaxed) =>
            {
                return Ok(());
            }
            read => read?,
        }
        stream.write_all(&reply)?;
    }
    // The client closes first, so that the capture ends as most do.
    stream.read(&mut header).map(drop)
}
