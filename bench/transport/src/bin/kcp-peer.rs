//! KCP (`tokio_kcp`) as a peer, as quinn-peer is, but not encrypted.
//!
//!     kcp-peer recv ADDR:PORT
//!     kcp-peer send ADDR:PORT BYTES WINDOW
//!
//! The setting for speed that its authors give: no delay, 10 ms, fast resend after 2, no congestion control. So its rate is
//! WINDOW packets of 1376 bytes a round trip, set by hand.

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Instant;

use acklab_bench_transport::say;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_kcp::{KcpConfig, KcpListener, KcpNoDelayConfig, KcpStream};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["recv", address] => runtime.block_on(receive(address.parse()?)),
        ["send", address, bytes, window] => {
            runtime.block_on(send(address.parse()?, bytes.parse()?, window.parse()?))
        }
        _ => Err("usage: kcp-peer recv ADDR | send ADDR BYTES WINDOW".into()),
    }
}

const fn config(window: u16) -> KcpConfig {
    KcpConfig {
        mtu: 1400,
        nodelay: KcpNoDelayConfig::fastest(),
        wnd_size: (window, window),
        session_expire: std::time::Duration::from_secs(90),
        flush_write: false,
        flush_acks_input: true,
        stream: true,
        allow_recv_empty_packet: false,
    }
}

/// One message of KCP has 128 packets at most.
const CHUNK: usize = 64 * 1024;
/// More than any sender's.
const RECEIVE_WINDOW: u16 = 4096;

async fn receive(address: SocketAddr) -> Outcome {
    let mut listener = KcpListener::bind(config(RECEIVE_WINDOW), address).await?;
    let (mut stream, _) = listener.accept().await?;
    let expected = stream.read_u64().await?;
    let (mut buffer, mut total) = (vec![0; CHUNK], 0u64);
    while total < expected {
        total += stream.read(&mut buffer).await? as u64;
    }
    stream.write_u64(total).await?;
    stream.flush().await?;
    // The answer may have to leave again: until the sender has ended, or is killed.
    drop(stream.read(&mut buffer).await);
    Ok(())
}

async fn send(address: SocketAddr, bytes: u64, window: u16) -> Outcome {
    let block = vec![0x5a; CHUNK];
    let start = Instant::now();
    let mut stream = KcpStream::connect(&config(window), address).await?;
    stream.write_u64(bytes).await?;
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        stream.write_all(&block[..now]).await?;
        left -= now as u64;
    }
    stream.flush().await?;
    let arrived = stream.read_u64().await?;
    say(arrived, bytes, start.elapsed())?;
    stream.write_u8(0).await?;
    stream.flush().await?;
    Ok(())
}
