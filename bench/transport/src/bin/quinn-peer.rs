//! quinn as a peer: sends bytes from memory over one stream and waits until the other end says that it
//! has them all.
//!
//!     quinn-peer recv DIR ADDR:PORT [FILE]     one transfer; DIR holds the certificate
//!     quinn-peer send DIR ADDR:PORT BYTES bbr|cubic [FILE]
//!
//! With FILE it does what acklab's ends do with a file, in the shortest way: blocks are read and hashed (BLAKE3, as a whole) by the
//! sender, hashed and written by the receiver, which syncs the file and says that it has the hash that the sender has sent
//! behind the bytes.
//!
//! quinn's defaults but for the congestion control and the cipher, which is AES-128-GCM as in acklab.
//! One thread, no certificate authority: both ends read the certificate from DIR.

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acklab_bench_transport::{CERTIFICATE, CHUNK, KEY, NAME, say};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match words[..] {
        ["recv", folder, address, ref file @ ..] => {
            runtime.block_on(receive(folder.as_ref(), address.parse()?, file.first().copied()))
        }
        ["send", folder, address, bytes, control, ref file @ ..] => {
            let file = file.first().map(Path::new);
            let bytes = bytes.parse()?;
            runtime.block_on(send(folder.as_ref(), address.parse()?, bytes, control, file))
        }
        _ => {
            Err("usage: quinn-peer recv DIR ADDR [FILE] | send DIR ADDR BYTES bbr|cubic [FILE]"
                .into())
        }
    }
}

async fn receive(folder: &Path, address: SocketAddr, file: Option<&str>) -> Outcome {
    let certificate = CertificateDer::from(fs::read(folder.join(CERTIFICATE))?);
    let key = PrivatePkcs8KeyDer::from(fs::read(folder.join(KEY))?);
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, address)?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let (mut out, mut input) = connection.accept_bi().await?;
    let mut total = 0u64;
    let mut sink = file.map(Sink::create).transpose()?;
    while let Some(chunk) = input.read_chunk(CHUNK, true).await? {
        total += chunk.bytes.len() as u64;
        if let Some(sink) = &mut sink {
            sink.take(&chunk.bytes)?;
        }
    }
    if let Some(sink) = sink {
        total = sink.finish()?;
    }
    out.write_all(&total.to_be_bytes()).await?;
    out.finish()?;
    connection.closed().await;
    Ok(())
}

/// What arrives, gathered in blocks, hashed and written; the last 32 bytes are the hash of the others.
struct Sink {
    file: File,
    hasher: blake3::Hasher,
    gather: Vec<u8>,
    written: u64,
}

impl Sink {
    fn create(path: &str) -> Outcome<Self> {
        let gather = Vec::with_capacity(2 * CHUNK);
        Ok(Self { file: File::create(path)?, hasher: blake3::Hasher::new(), gather, written: 0 })
    }

    fn take(&mut self, bytes: &[u8]) -> Outcome {
        self.gather.extend_from_slice(bytes);
        if self.gather.len() >= CHUNK + HASH {
            self.put(CHUNK)?;
        }
        Ok(())
    }

    fn put(&mut self, count: usize) -> Outcome {
        self.hasher.update(&self.gather[..count]);
        self.file.write_all(&self.gather[..count])?;
        self.gather.drain(..count);
        self.written += count as u64;
        Ok(())
    }

    fn finish(mut self) -> Outcome<u64> {
        let rest = self.gather.len().checked_sub(HASH).ok_or("no hash has come")?;
        self.put(rest)?;
        if self.gather != self.hasher.finalize().as_bytes() {
            return Err("what arrived is something else".into());
        }
        self.file.sync_data()?;
        Ok(self.written)
    }
}

/// Bytes of a hash.
const HASH: usize = 32;

async fn send(
    folder: &Path,
    address: SocketAddr,
    bytes: u64,
    control: &str,
    file: Option<&Path>,
) -> Outcome {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(folder.join(CERTIFICATE))?))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut transport = TransportConfig::default();
    match control {
        "bbr" => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        "cubic" => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        _ => return Err("congestion control: bbr or cubic".into()),
    };
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let mut block = vec![0x5a; CHUNK];
    let mut source =
        file.map(|path| File::open(path).map(|it| (it, blake3::Hasher::new()))).transpose()?;

    let start = Instant::now();
    let connection = endpoint.connect_with(config, address, NAME)?.await?;
    let (mut out, mut input) = connection.open_bi().await?;
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        if let Some((file, hasher)) = &mut source {
            file.read_exact(&mut block[..now])?;
            hasher.update(&block[..now]);
        }
        out.write_all(&block[..now]).await?;
        left -= now as u64;
    }
    if let Some((_, hasher)) = source {
        out.write_all(hasher.finalize().as_bytes()).await?;
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

fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}
