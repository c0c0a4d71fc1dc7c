//! Socket options, flags of descriptors and ioctls, their values as bytes.

use acklab_host::calls::Stop;
use acklab_host::errno;
use acklab_host::info::{MEMORY, tcp_info_bytes};
use acklab_host::settings::{SECOND, Us};
use acklab_host::socket::O_NONBLOCK;
use acklab_packetdrill::world::World as _;

use crate::door::{Door, Outcome, State};

const SOCKET: i32 = 1;
const TCP: i32 = 6;
/// SO_LINGER, SO_RCVTIMEO, SO_SNDTIMEO, SO_MAX_PACING_RATE, SO_MEMINFO of [`SOCKET`].
const LINGER: i32 = 13;
const TIMEOUTS: [i32; 2] = [20, 21];
const PACING: i32 = 47;
const MEMINFO: i32 = 55;
/// TCP_INFO and TCP_CONGESTION of [`TCP`].
const INFO: i32 = 11;
const CONGESTION: i32 = 13;

fn number(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        0 => None,
        1..=3 => Some(i64::from(bytes[0])),
        4..=7 => Some(i64::from(i32::from_ne_bytes(bytes[..4].try_into().ok()?))),
        _ => Some(i64::from_ne_bytes(bytes[..8].try_into().ok()?)),
    }
}

fn int(bytes: &[u8]) -> Result<i64, Stop> {
    number(bytes.get(..4).unwrap_or(&[])).ok_or(Stop::Errno(errno::EINVAL))
}

fn two(first: i64, second: i64) -> Vec<u8> {
    let mut bytes = (first as i32).to_ne_bytes().to_vec();
    bytes.extend((second as i32).to_ne_bytes());
    bytes
}

impl State {
    fn set_option(&mut self, real: i32, option: (i32, i32), value: &[u8]) -> Result<i64, Stop> {
        let now = self.now();
        let open = self.open(real)?;
        let second = || int(value.get(4..).unwrap_or(&[]));
        match option {
            (SOCKET, LINGER) => self.world().set_linger(open.fd, int(value)? != 0, second()?),
            (SOCKET, name) if TIMEOUTS.contains(&name) => {
                let part = |at: usize| number(value.get(at..at + 8).unwrap_or(&[]));
                let (seconds, us) = part(0).zip(part(8)).ok_or(Stop::Errno(errno::EINVAL))?;
                let patience = seconds as Us * SECOND + us as Us;
                self.be_patient(
                    real,
                    usize::from(name == TIMEOUTS[1]),
                    (patience > 0).then_some(patience),
                );
                Ok(0)
            }
            (SOCKET, PACING) if value.len() >= 8 => {
                let value = number(value).unwrap_or(0);
                self.world().set_option(now, open.fd, option.0, option.1, value)
            }
            (TCP, CONGESTION) => {
                let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                let name = String::from_utf8_lossy(&value[..end]).into_owned();
                self.world().set_congestion(now, open.fd, &name)
            }
            (level, name) => {
                // An option of IP may be a byte.
                let value = if level == SOCKET || level == TCP {
                    int(value)?
                } else {
                    number(value).unwrap_or(0)
                };
                self.world().set_option(now, open.fd, level, name, value)
            }
        }
    }

    fn option(&mut self, real: i32, level: i32, name: i32) -> Result<Vec<u8>, Stop> {
        let now = self.now();
        let open = self.open(real)?;
        match (level, name) {
            (SOCKET, LINGER) => self.world().linger(open.fd).map(|(on, time)| two(on, time)),
            (SOCKET, name) if TIMEOUTS.contains(&name) => {
                let patience = open.patience[usize::from(name == TIMEOUTS[1])].unwrap_or(0);
                let mut bytes = (patience / SECOND).to_ne_bytes().to_vec();
                bytes.extend((patience % SECOND).to_ne_bytes());
                Ok(bytes)
            }
            (SOCKET, PACING) => {
                self.world().option(now, open.fd, level, name).map(|v| v.to_ne_bytes().to_vec())
            }
            (SOCKET, MEMINFO) => {
                let fields = self.world().info_of(now, open.fd)?;
                let of = |name| fields.iter().find(|(known, _)| *known == name).map_or(0, |f| f.1);
                Ok(MEMORY.iter().flat_map(|&name| (of(name) as u32).to_ne_bytes()).collect())
            }
            (TCP, INFO) => self.world().info_of(now, open.fd).map(|fields| tcp_info_bytes(&fields)),
            (TCP, CONGESTION) => self.world().congestion(open.fd).map(|name| {
                let mut bytes = name.into_bytes();
                bytes.resize(16, 0);
                bytes
            }),
            _ => {
                let value = self.world().option(now, open.fd, level, name)?;
                Ok((value as i32).to_ne_bytes().to_vec())
            }
        }
    }

    fn fcntl(&mut self, real: i32, command: i32, argument: i64) -> Result<i64, Stop> {
        let open = self.open(real)?;
        let flags = self.world().flags(open.fd).ok_or(Stop::Errno(errno::EBADF))?;
        match command {
            // F_DUPFD and F_DUPFD_CLOEXEC
            0 | 1030 => {
                let copy = self.world().dup(open.fd)?;
                self.publish(copy as i32, open.family).map_err(Stop::Errno)
            }
            // F_GETFD, F_SETFD
            1 | 2 => Ok(0),
            // F_GETFL, F_SETFL
            3 => Ok(i64::from(flags)),
            4 => {
                self.world().set_flags(open.fd, flags & 3 | argument as i32 & !3);
                Ok(0)
            }
            _ => Err(Stop::Errno(errno::EINVAL)),
        }
    }

    /// What ioctl(2) writes, if anything.
    fn ioctl(&mut self, real: i32, request: u64, argument: i32) -> Result<Option<i32>, Stop> {
        let open = self.open(real)?;
        // FIONBIO
        if request == 0x5421 {
            let flags = self.world().flags(open.fd).unwrap_or(2) & !O_NONBLOCK;
            self.world().set_flags(open.fd, flags | if argument == 0 { 0 } else { O_NONBLOCK });
            return Ok(None);
        }
        let queued = self.world().queued(open.fd)?;
        match request {
            // SIOCINQ, SIOCOUTQ, SIOCOUTQNSD
            0x541b => Ok(Some(queued[0] as i32)),
            0x5411 => Ok(Some(queued[1] as i32)),
            0x894b => Ok(Some(queued[2] as i32)),
            _ => Err(Stop::Errno(errno::ENOTTY)),
        }
    }
}

fn told<T>(done: Result<T, Stop>) -> Result<T, i32> {
    done.map_err(|stop| match stop {
        Stop::Errno(errno) => errno,
        Stop::Block => errno::EAGAIN,
    })
}

impl Door {
    pub(crate) fn set_option(&self, fd: i32, level: i32, name: i32, value: &[u8]) -> Outcome {
        self.at_once(|state| told(state.set_option(fd, (level, name), value)))
    }

    pub(crate) fn option(&self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, i32> {
        self.at_once(|state| told(state.option(fd, level, name)))
    }

    pub(crate) fn fcntl(&self, fd: i32, command: i32, argument: i64) -> Outcome {
        self.at_once(|state| told(state.fcntl(fd, command, argument)))
    }

    pub(crate) fn ioctl(&self, fd: i32, request: u64, argument: i32) -> Result<Option<i32>, i32> {
        self.at_once(|state| told(state.ioctl(fd, request, argument)))
    }
}
