//! Who is compared, and the command lines of their two ends.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::metered::text;
use crate::{CERTIFICATE, CERTIFICATE_PEM, KEY, KEY_PEM, NAME};

/// One transport with its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Contender {
    /// `acklab send` and `acklab recv`, one path.
    Acklab,
    /// The same over two paths.
    Acklab2,
    /// Its protocol from memory to memory, as the peers are measured.
    Rudp,
    /// The same over two paths.
    Rudp2,
    /// quinn with BBR.
    QuinnBbr,
    /// quinn with CUBIC.
    QuinnCubic,
    /// quinn with CUBIC, from file to file with hashes.
    QuinnFile,
    /// noq with BBR v3.
    NoqBbr3,
    /// The same over two paths.
    NoqBbr3Two,
    /// TQUIC with BBR v1.
    TquicBbr,
    /// The same over two paths.
    TquicBbrTwo,
    /// s2n-quic with BBR v2.
    S2nBbr,
    /// KCP, its window set by hand.
    Kcp,
    /// SRT in file mode.
    Srt,
    /// The kernel's TCP with BBR.
    TcpBbr,
    /// The kernel's TCP with CUBIC.
    TcpCubic,
}

/// All of them, in the order of the tables.
pub const ALL: [Contender; 16] = [
    Contender::Acklab,
    Contender::Acklab2,
    Contender::Rudp,
    Contender::Rudp2,
    Contender::QuinnBbr,
    Contender::QuinnCubic,
    Contender::QuinnFile,
    Contender::NoqBbr3,
    Contender::NoqBbr3Two,
    Contender::TquicBbr,
    Contender::TquicBbrTwo,
    Contender::S2nBbr,
    Contender::Kcp,
    Contender::Srt,
    Contender::TcpBbr,
    Contender::TcpCubic,
];

/// Where the programs are and where their files go.
pub struct Workshop {
    /// The acklab program.
    pub acklab: PathBuf,
    /// The folder of quinn-peer and tcp-peer.
    pub peers: PathBuf,
    /// A folder of the run's own.
    pub folder: PathBuf,
}

/// A secret that both ends of acklab are given.
const PASSPHRASE: &str = "bench transport side by side";
/// Packets of 1376 bytes: the round trip and the queue of 20 Mbit/s, 20 ms and 100 ms.
const KCP_WINDOW: u16 = 254;
/// Every server's port.
const PORT: u16 = 4433;

impl Contender {
    /// As it stands in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acklab => "acklab",
            Self::Acklab2 => "acklab, 2 paths",
            Self::Rudp => "acklab memory",
            Self::Rudp2 => "the same, 2 paths",
            Self::QuinnBbr => "quinn BBR",
            Self::QuinnCubic => "quinn CUBIC",
            Self::QuinnFile => "quinn, files",
            Self::NoqBbr3 => "noq BBR3",
            Self::NoqBbr3Two => "noq BBR3, 2 paths",
            Self::TquicBbr => "TQUIC BBR",
            Self::TquicBbrTwo => "TQUIC BBR, 2 paths",
            Self::S2nBbr => "s2n-quic BBR",
            Self::Kcp => "KCP",
            Self::Srt => "SRT file",
            Self::TcpBbr => "TCP BBR",
            Self::TcpCubic => "TCP CUBIC",
        }
    }

    /// How many paths it uses.
    pub fn paths(self) -> usize {
        if matches!(self, Self::Acklab2 | Self::Rudp2 | Self::NoqBbr3Two | Self::TquicBbrTwo) {
            2
        } else {
            1
        }
    }

    /// The command of the receiving end, at these addresses.
    pub fn receive(self, shop: &Workshop, addresses: &[&str]) -> Vec<String> {
        let at = |address: &&str| format!("{address}:{PORT}");
        match self {
            Self::Acklab | Self::Acklab2 => {
                let mut words = vec![text(&shop.acklab), "recv".into(), text(&shop.inbox())];
                for address in &addresses[..self.paths()] {
                    words.extend(["--listen".into(), at(address)]);
                }
                words.extend(["--passphrase".into(), PASSPHRASE.into(), "--once".into()]);
                words
            }
            Self::Rudp | Self::Rudp2 => {
                let words = vec![shop.peer("rudp-peer"), "recv".into()];
                words.into_iter().chain(addresses[..self.paths()].iter().map(at)).collect()
            }
            Self::QuinnBbr | Self::QuinnCubic => {
                vec![shop.peer("quinn-peer"), "recv".into(), text(&shop.folder), at(&addresses[0])]
            }
            Self::QuinnFile => {
                let into = text(&shop.inbox().join("arrived"));
                vec![
                    shop.peer("quinn-peer"),
                    "recv".into(),
                    text(&shop.folder),
                    at(&addresses[0]),
                    into,
                ]
            }
            Self::NoqBbr3 | Self::NoqBbr3Two => {
                vec![shop.peer("noq-peer"), "recv".into(), text(&shop.folder), PORT.to_string()]
            }
            Self::TquicBbr | Self::TquicBbrTwo => {
                let words = vec![shop.peer("tquic-peer"), "recv".into(), text(&shop.folder)];
                words.into_iter().chain(addresses[..self.paths()].iter().map(at)).collect()
            }
            Self::S2nBbr => {
                vec![shop.peer("s2n-peer"), "recv".into(), text(&shop.folder), at(&addresses[0])]
            }
            Self::Kcp => vec![shop.peer("kcp-peer"), "recv".into(), at(&addresses[0])],
            Self::Srt => {
                vec![shop.peer("srt-peer"), "recv".into(), text(&shop.inbox()), at(&addresses[0])]
            }
            Self::TcpBbr | Self::TcpCubic => {
                vec![shop.peer("tcp-peer"), "recv".into(), at(&addresses[0])]
            }
        }
    }

    /// The command of the sending end, from and to these addresses.
    pub fn send(self, shop: &Workshop, local: &[&str], remote: &[&str], bytes: u64) -> Vec<String> {
        let to = |path: usize| format!("{}:{PORT}", remote[path]);
        let control = match self {
            Self::QuinnCubic | Self::QuinnFile | Self::TcpCubic => "cubic",
            _ => "bbr",
        };
        match self {
            Self::Acklab | Self::Acklab2 => {
                let mut words =
                    vec![text(&shop.acklab), "send".into(), text(&shop.file(bytes)), to(0)];
                for (path, local) in local.iter().enumerate().take(self.paths()).skip(1) {
                    words.extend(["--path".into(), format!("{local},{}", to(path))]);
                }
                words.extend(["--passphrase", PASSPHRASE, "--format", "json"].map(String::from));
                words
            }
            Self::Rudp | Self::Rudp2 => {
                let first = [shop.peer("rudp-peer"), "send".into(), bytes.to_string(), to(0)];
                let others = local.iter().enumerate().take(self.paths()).skip(1);
                let others = others.map(|(path, local)| format!("{local},{}", to(path)));
                first.into_iter().chain(others).collect()
            }
            Self::QuinnBbr | Self::QuinnCubic | Self::QuinnFile => {
                let words = [text(&shop.folder), to(0), bytes.to_string(), control.into()];
                let file = (self == Self::QuinnFile).then(|| text(&shop.file(bytes)));
                let first = [shop.peer("quinn-peer"), "send".into()];
                first.into_iter().chain(words).chain(file).collect()
            }
            Self::NoqBbr3 | Self::NoqBbr3Two => {
                let words = [text(&shop.folder), bytes.to_string(), "bbr3".into()];
                let first = vec![shop.peer("noq-peer"), "send".into()];
                let paths = (0..self.paths()).map(to);
                first.into_iter().chain(words).chain(paths).collect()
            }
            Self::TquicBbr | Self::TquicBbrTwo => {
                let first = [shop.peer("tquic-peer"), "send".into(), text(&shop.folder)];
                let words = [bytes.to_string(), control.into(), to(0)];
                let others = local.iter().enumerate().take(self.paths()).skip(1);
                let others = others.map(|(path, local)| format!("{local},{}", to(path)));
                first.into_iter().chain(words).chain(others).collect()
            }
            Self::S2nBbr => {
                let words = [text(&shop.folder), to(0), bytes.to_string(), control.into()];
                [vec![shop.peer("s2n-peer"), "send".into()], words.to_vec()].concat()
            }
            Self::Kcp => {
                let window = KCP_WINDOW.to_string();
                vec![shop.peer("kcp-peer"), "send".into(), to(0), bytes.to_string(), window]
            }
            Self::Srt => {
                let words = [text(&shop.file(bytes)), text(&shop.inbox()), to(0)];
                let first = vec![shop.peer("srt-peer"), "send".into()];
                first.into_iter().chain(words).chain([bytes.to_string()]).collect()
            }
            Self::TcpBbr | Self::TcpCubic => {
                vec![shop.peer("tcp-peer"), "send".into(), to(0), bytes.to_string(), control.into()]
            }
        }
    }
}

impl Workshop {
    /// Makes the folder with quinn's certificate and the files that acklab sends.
    pub fn set_up(&self, sizes: &[u64]) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(&self.folder)?;
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
        fs::write(self.folder.join(CERTIFICATE), made.cert.der())?;
        fs::write(self.folder.join(KEY), made.signing_key.serialize_der())?;
        fs::write(self.folder.join(CERTIFICATE_PEM), made.cert.pem())?;
        fs::write(self.folder.join(KEY_PEM), made.signing_key.serialize_pem())?;
        for &bytes in sizes {
            // Not sparse, and no two chunks alike.
            let words = (0..bytes.div_ceil(8)).flat_map(|n| scrambled(n).to_be_bytes());
            let content: Vec<u8> = words.take(usize::try_from(bytes)?).collect();
            fs::write(self.file(bytes), content)?;
        }
        Ok(())
    }

    /// Empties the folder that acklab receives into.
    pub fn clear_inbox(&self) -> Result<(), Box<dyn Error>> {
        if self.inbox().exists() {
            fs::remove_dir_all(self.inbox())?;
        }
        fs::create_dir_all(self.inbox())?;
        Ok(())
    }

    /// Whether acklab's receiver has that file, byte for byte.
    pub fn arrived(&self, bytes: u64) -> bool {
        let sent = self.file(bytes);
        let arrived = sent.file_name().map(|name| self.inbox().join(name));
        match (fs::read(sent), arrived.map(fs::read)) {
            (Ok(sent), Some(Ok(arrived))) => sent == arrived,
            _ => false,
        }
    }

    fn inbox(&self) -> PathBuf {
        self.folder.join("inbox")
    }

    fn file(&self, bytes: u64) -> PathBuf {
        self.folder.join(format!("{bytes}.bin"))
    }

    fn peer(&self, name: &str) -> String {
        text(&self.peers.join(name))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014) of a counter.
fn scrambled(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A folder for this process under the one for temporary files.
pub fn own_folder(under: &Path) -> PathBuf {
    under.join(format!("acklab-bench-{}", std::process::id()))
}
