//! noq, n0's fork of quinn with several paths, as a peer, as quinn-peer is.
//!
//!     noq-peer recv DIR PORT
//!     noq-peer send DIR BYTES bbr3|cubic ADDR:PORT...
//!
//! Each further ADDR:PORT is a path that is opened once the connection is there, as early as the server's connection ids
//! allow. The receiver listens on every address. Defaults but for the congestion control and the cipher.

use std::env;
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acklab_bench_transport::{CERTIFICATE, CHUNK, KEY, NAME, say};
use noq::congestion::{Bbr3Config, CubicConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathError, PathStatus, ServerConfig,
    TransportConfig,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["recv", folder, port] => runtime.block_on(receive(folder.as_ref(), port.parse()?)),
        ["send", folder, bytes, control, ref addresses @ ..] => {
            let addresses: Result<Vec<SocketAddr>, _> =
                addresses.iter().map(|address| address.parse()).collect();
            runtime.block_on(send(folder.as_ref(), &addresses?, bytes.parse()?, control))
        }
        _ => Err("usage: noq-peer recv DIR PORT | send DIR BYTES bbr3|cubic ADDR...".into()),
    }
}

async fn receive(folder: &Path, port: u16) -> Outcome {
    let certificate = CertificateDer::from(fs::read(folder.join(CERTIFICATE))?);
    let key = PrivatePkcs8KeyDer::from(fs::read(folder.join(KEY))?);
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport()));
    let endpoint = Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, port).into())?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let (mut out, mut input) = connection.accept_bi().await?;
    let mut total = 0u64;
    while let Some(chunk) = input.read_chunk(CHUNK).await? {
        total += chunk.len() as u64;
    }
    out.write_all(&total.to_be_bytes()).await?;
    out.finish()?;
    connection.closed().await;
    Ok(())
}

async fn send(folder: &Path, addresses: &[SocketAddr], bytes: u64, control: &str) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(folder.join(CERTIFICATE))?))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut transport = transport();
    match control {
        "bbr3" => transport.congestion_controller_factory(Arc::new(Bbr3Config::default())),
        "cubic" => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        _ => return Err("congestion control: bbr3 or cubic".into()),
    };
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let block = vec![0x5a; CHUNK];

    let start = Instant::now();
    let first = *addresses.first().ok_or("no address")?;
    let connection = endpoint.connect_with(config, first, NAME)?.await?;
    for &address in &addresses[1..] {
        tokio::spawn(open_path(connection.clone(), address));
    }
    let (mut out, mut input) = connection.open_bi().await?;
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        out.write_all(&block[..now]).await?;
        left -= now as u64;
    }
    out.finish()?;
    let mut answer = [0; 8];
    input.read_exact(&mut answer).await?;
    let seconds = start.elapsed();
    say(u64::from_be_bytes(answer), bytes, seconds)?;
    connection.close(0u32.into(), b"done");
    // The close may be lost; the receiver's idle time-out is not to be waited for either.
    drop(tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await);
    Ok(())
}

/// As many paths as acklab uses in the tables.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(2);
    transport
}

async fn open_path(connection: Connection, address: SocketAddr) {
    loop {
        match connection.open_path(FourTuple::from_remote(address), PathStatus::Available).await {
            Ok(_) => return,
            Err(PathError::RemoteCidsExhausted) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return eprintln!("noq-peer: no path to {address}: {error}"),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}
