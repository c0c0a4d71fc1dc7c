//! The TUN device between acklab's TCP and the kernel: made here, gone with its file.
//!
//! The kernel's end has one address, acklab's is the other end of a point-to-point link; the kernel's
//! routes lead to it, and on from it where forwarding is on. Packets are whole IP packets of at most the MTU:
//! without the device's offloads the kernel cuts its segments before they come here.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use crate::kernel::{TUN, open_tun};
use crate::namespace;

/// Packets that may wait for us: more than any window of the kernel's.
const QUEUE: u32 = 10_000;
/// The least that every IPv6 link carries (RFC 8200 section 5), and what IPv4 hosts take (RFC 791).
const LEAST_MTU6: u32 = 1280;
const LEAST_MTU: u32 = 576;
/// IP packets are no longer.
const MOST_MTU: u32 = 65_535;

/// What the device is to be.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Its name; the kernel puts the first free number in place of `%d`.
    pub name: String,
    /// The address behind it: acklab's.
    pub local: IpAddr,
    /// The kernel's; `None`: the one before `local`.
    pub host: Option<IpAddr>,
    /// Largest packet, bytes.
    pub mtu: u32,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The process may not make devices.
    #[error(
        "{doing}: not permitted; it needs CAP_NET_ADMIN and /dev/net/tun, so run it as root (for example with \
         sudo), or where any user may open /dev/net/tun in a new network namespace (unshare --user \
         --map-root-user --net)"
    )]
    Privilege {
        /// What was being attempted.
        doing: &'static str,
    },
    /// There is a device of that name.
    #[error("a device {0} is there already; choose another name")]
    Taken(String),
    /// The name is none that the kernel takes.
    #[error("{0:?} is no name of a device: 1 to 15 bytes without / and blanks")]
    Name(String),
    /// The address is the machine's own.
    #[error(
        "{0} is an address of this machine; acklab's TCP needs one that the kernel does not have"
    )]
    Own(IpAddr),
    /// Both ends of the device need addresses of one family.
    #[error("{local} and {host} must be two addresses of one family")]
    Ends {
        /// acklab's.
        local: IpAddr,
        /// The kernel's.
        host: IpAddr,
    },
    /// The MTU.
    #[error("an MTU of {mtu} bytes; from {least} to {MOST_MTU} will do")]
    Mtu {
        /// What was asked for.
        mtu: u32,
        /// The least that the family allows.
        least: u32,
    },
    /// A system call failed for another reason.
    #[error("{doing}: {errno}")]
    System {
        /// What was being attempted.
        doing: &'static str,
        /// The kernel's reason.
        errno: Errno,
    },
}

/// A device that is up.
#[derive(Debug)]
pub struct Device {
    pub(super) file: File,
    name: String,
    options: DeviceOptions,
    host: IpAddr,
}

impl Device {
    /// Makes it in the calling thread's network namespace.
    pub fn open(options: &DeviceOptions) -> Result<Self, DeviceError> {
        let &DeviceOptions { ref name, local, host, mtu } = options;
        let host = host.unwrap_or_else(|| before(local));
        if local.is_ipv4() != host.is_ipv4() || local == host {
            return Err(DeviceError::Ends { local, host });
        }
        let least = if local.is_ipv4() { LEAST_MTU } else { LEAST_MTU6 };
        if !(least..=MOST_MTU).contains(&mtu) {
            return Err(DeviceError::Mtu { mtu, least });
        }
        let strange = |c: char| c == '/' || c.is_whitespace();
        let dots = name == "." || name == "..";
        if name.is_empty() || name.len() > 15 || dots || name.contains(strange) {
            return Err(DeviceError::Name(name.clone()));
        }
        // Only one's own address can be bound to.
        if UdpSocket::bind((local, 0)).is_ok() {
            return Err(DeviceError::Own(local));
        }
        let doing = "make a TUN device (/dev/net/tun)";
        let (file, name) = open_tun(name, TUN).map_err(|error| {
            match error.raw_os_error().map_or(Errno::EIO, Errno::from_raw) {
                // Busy: a TUN device; invalid: a device of another kind.
                Errno::EBUSY | Errno::EINVAL => DeviceError::Taken(name.clone()),
                errno => system(doing)(errno),
            }
        })?;
        let index = if_nametoindex(name.as_str()).map_err(system("find the TUN device"))?;
        namespace::interface_up(index, QUEUE, Some(mtu))
            .map_err(system("bring up the TUN device"))?;
        namespace::add_address_towards(index, host, local)
            .map_err(system("give the TUN device an address"))?;
        Ok(Self { file, name, options: options.clone(), host })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// acklab's address.
    pub const fn local(&self) -> IpAddr {
        self.options.local
    }

    /// The kernel's address.
    pub const fn host(&self) -> IpAddr {
        self.host
    }

    /// Largest packet, bytes.
    pub const fn mtu(&self) -> u32 {
        self.options.mtu
    }
}

/// The address before another one.
fn before(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address).wrapping_sub(1)).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address).wrapping_sub(1)).into(),
    }
}

fn system(doing: &'static str) -> impl FnOnce(Errno) -> DeviceError {
    move |errno| match errno {
        Errno::EPERM | Errno::EACCES => DeviceError::Privilege { doing },
        errno => DeviceError::System { doing, errno },
    }
}
