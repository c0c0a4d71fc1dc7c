//! s2n-quic as a peer, as quinn-peer is.
//!
//!     s2n-peer recv DIR ADDR:PORT
//!     s2n-peer send DIR ADDR:PORT BYTES bbr|cubic
//!
//! Defaults but for the congestion control; of its ciphers rustls takes AES-128-GCM, the first, from aws-lc-rs.

use std::env;
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use acklab_bench_transport::{CERTIFICATE, CHUNK, KEY, NAME, say};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::{Client, Server};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["recv", folder, address] => runtime.block_on(receive(folder.as_ref(), address.parse()?)),
        ["send", folder, address, bytes, control] => {
            runtime.block_on(send(folder.as_ref(), address.parse()?, bytes.parse()?, control))
        }
        _ => Err("usage: s2n-peer recv DIR ADDR | send DIR ADDR BYTES bbr|cubic".into()),
    }
}

async fn receive(folder: &Path, address: SocketAddr) -> Outcome {
    let (certificate, key) = (fs::read(folder.join(CERTIFICATE))?, fs::read(folder.join(KEY))?);
    let mut server =
        Server::builder().with_tls((&certificate[..], &key[..]))?.with_io(address)?.start()?;
    let mut connection = server.accept().await.ok_or("closed")?;
    let stream = connection.accept_bidirectional_stream().await?.ok_or("closed")?;
    let (mut input, mut out) = stream.split();
    let mut total = 0u64;
    while let Some(bytes) = input.receive().await? {
        total += bytes.len() as u64;
    }
    out.send(total.to_be_bytes().to_vec().into()).await?;
    out.finish()?;
    // Until the sender closes.
    while let Ok(Some(_)) = connection.accept().await {}
    Ok(())
}

async fn send(folder: &Path, address: SocketAddr, bytes: u64, control: &str) -> Outcome {
    let certificate = fs::read(folder.join(CERTIFICATE))?;
    let local: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    let client = Client::builder().with_tls(&certificate[..])?.with_io(local)?;
    let client = match control {
        "bbr" => client.with_congestion_controller(Bbr::default())?.start()?,
        "cubic" => client.with_congestion_controller(Cubic::default())?.start()?,
        _ => return Err("congestion control: bbr or cubic".into()),
    };
    let block = bytes::Bytes::from(vec![0x5a; CHUNK]);

    let start = Instant::now();
    let mut connection = client.connect(Connect::new(address).with_server_name(NAME)).await?;
    let (mut input, mut out) = connection.open_bidirectional_stream().await?.split();
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        out.send(block.slice(..now)).await?;
        left -= now as u64;
    }
    out.finish()?;
    let mut answer = Vec::new();
    while let Some(bytes) = input.receive().await? {
        answer.extend_from_slice(&bytes);
    }
    let seconds = start.elapsed();
    say(u64::from_be_bytes(answer[..].try_into()?), bytes, seconds)?;
    connection.close(0u32.into());
    let mut client = client;
    drop(tokio::time::timeout(Duration::from_secs(1), client.wait_idle()).await);
    Ok(())
}
