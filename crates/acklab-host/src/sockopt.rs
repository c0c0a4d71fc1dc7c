//! Socket options.

use crate::acking::DELAY_MAX;
use crate::calls::{Called, Stop};
use crate::cc::Congestion;
use crate::errno;
use crate::host::{Host, with};
use crate::output::Push;
use crate::settings::{Env, MS, SECOND, Us};
use crate::socket::{Family, IP, IPV6, SOCKET, TCP};
use crate::tcp::{State, Tcp, poll};
use crate::window::MSS_LEAST;

const fn bad<T>(error: i32) -> Result<T, Stop> {
    Err(Stop::Errno(error))
}

impl Host {
    /// setsockopt(2) of a number.
    pub fn set_option(&mut self, now: Us, fd: i32, level: i32, name: i32, value: i64) -> Called {
        if self.udp(fd).is_some() {
            return self.set_datagram_option(fd, (level, name), value);
        }
        let index = self.index(fd)?;
        match level {
            SOCKET => self.set_socket_option(now, index, name, value),
            TCP => self.set_tcp_option(now, index, name, value),
            IP | IPV6 => {
                let opt = &mut self.sockets[index].tcp.opt;
                match (level, name) {
                    (IP, MTU | HDRINCL) => return bad(errno::ENOPROTOOPT),
                    (IP, MINTTL) if !(0..=255).contains(&value) => return bad(errno::EINVAL),
                    (IP, MINTTL) => opt.min_ttl = value as u8,
                    (IP, 2) | (IPV6, 16) if value != -1 && !(1..=255).contains(&value) => {
                        return bad(errno::EINVAL);
                    }
                    (IP, 10) if !(0..=5).contains(&value) => return bad(errno::EINVAL),
                    (IP, 2) | (IPV6, 16) => opt.ttl = if value == -1 { 0 } else { value as u8 },
                    (IP, 1) | (IPV6, 67) => opt.tos = value as u8 & !3,
                    (IP, 10) | (IPV6, 23) => opt.pmtu_discover = value as u8,
                    (IP, 11) | (IPV6, 25) => opt.recverr = value != 0,
                    _ => {}
                }
                self.sockets[index].kept.insert((level, name), value);
                Ok(0)
            }
            _ => bad(errno::ENOPROTOOPT),
        }
    }

    fn set_socket_option(&mut self, now: Us, index: usize, name: i32, value: i64) -> Called {
        let rmem = self.sysctls.of("rmem_max");
        let wmem = self.sysctls.of("wmem_max");
        let most_rmem = self.sysctls.nth("tcp_rmem", 2) as u32;
        let env = self.env(now);
        let keep_idle = self.sockets[index].tcp.keep_idle(&env);
        let socket = &mut self.sockets[index];
        let tcp = &mut socket.tcp;
        if let Some(error) = refused(name, value) {
            return bad(error);
        }
        match name {
            // SO_SNDBUF, SO_SNDBUFFORCE
            7 | 32 => {
                let value = i64::from(value as u32);
                let value = if name == 7 { value.min(wmem) } else { value };
                tcp.opt.sndbuf = (value * 2).max(4608) as u32;
                tcp.opt.sndbuf_locked = true;
            }
            // SO_RCVBUF, SO_RCVBUFFORCE
            8 | 33 => {
                let value = i64::from(value as u32);
                let value = if name == 8 { value.min(rmem) } else { value };
                tcp.rcv.buffer = (value * 2).max(2304) as u32;
                // The window's ceiling follows when packets show what a buffer holds.
                tcp.opt.rcvbuf_locked = true;
            }
            9 => {
                tcp.opt.keepalive = value != 0;
                tcp.timers.keepalive = (value != 0
                    && !matches!(tcp.state, State::Close | State::Listen | State::SynSent))
                .then_some(now + keep_idle);
            }
            12 => {
                tcp.opt.priority = value as u32;
                socket.kept.insert((SOCKET, name), value);
            }
            18 => tcp.set_low_mark(value, most_rmem),
            37 | 65 => {
                let was = socket.timestamping;
                if value & 0x80 != 0 && was & 0x80 == 0 {
                    if matches!(tcp.state, State::Close | State::Listen) {
                        return bad(errno::EINVAL);
                    }
                    let by_write = value & 0x1_0000 != 0;
                    socket.stamp_base = if by_write { tcp.snd.write_seq } else { tcp.snd.una };
                }
                socket.timestamping = value as u32;
            }
            PEEK_OFF => tcp.opt.peek_off = value,
            47 => {
                tcp.opt.pacing = if value < 0 { 0 } else { value as u64 };
                socket.kept.insert((SOCKET, name), value);
            }
            60 => socket.zero_copy = value != 0,
            // On or off, SO_TXREHASH at -1 the system's.
            1 | 2 | 5 | 6 | 10 | 11 | 15 | 45 | 74 => {
                socket.kept.insert((SOCKET, name), i64::from(value != 0));
            }
            _ => {
                socket.kept.insert((SOCKET, name), value);
            }
        }
        if matches!(name, 7 | 32) {
            self.tell_of_space(now, index);
        }
        self.settle(now, index);
        Ok(0)
    }

    /// Another size of the send buffer wakes who waits to write, if there is room.
    fn tell_of_space(&mut self, now: Us, index: usize) {
        with!(self, now, index, |socket, env| {
            if socket.tcp.has_write_space(&env) {
                socket.tcp.snd.no_space = false;
                socket.tcp.wake(poll::OUT | poll::WRNORM);
            }
        });
    }

    /// setsockopt(2) of SO_LINGER.
    pub fn set_linger(&mut self, fd: i32, on: bool, seconds: i64) -> Called {
        let index = self.index(fd)?;
        self.sockets[index].tcp.opt.linger = on.then_some(seconds as Us * SECOND);
        Ok(0)
    }

    /// setsockopt(2) of TCP_CONGESTION.
    pub fn set_congestion(&mut self, now: Us, fd: i32, name: &str) -> Called {
        let index = self.index(fd)?;
        let Some(mut chosen) = Congestion::named(name) else { return bad(errno::ENOENT) };
        let tcp = &mut self.sockets[index].tcp;
        chosen.init(now, tcp.snd.nxt);
        tcp.cc = chosen;
        Ok(0)
    }

    fn set_tcp_option(&mut self, now: Us, index: usize, name: i32, value: i64) -> Called {
        let state = self.sockets[index].tcp.state;
        if let 30 | 34 = name {
            let on = match value {
                0 | 1 => value == 1,
                _ => return bad(errno::EINVAL),
            };
            if name == 30 && self.sysctls.of("tcp_fastopen") & 1 == 0 {
                return bad(errno::EOPNOTSUPP);
            }
            if state != State::Close && (name == 30 || state != State::Listen) {
                return bad(errno::EINVAL);
            }
            let fast = &mut self.sockets[index].fast;
            *(if name == 30 { &mut fast.on_connect } else { &mut fast.no_cookie }) = on;
            self.sockets[index].kept.insert((TCP, name), value);
            return Ok(0);
        }
        if name == 23 {
            if value < 0 || !matches!(state, State::Close | State::Listen) {
                return bad(errno::EINVAL);
            }
            self.sockets[index].tcp.opt.fastopen = value as u32;
            self.sockets[index].kept.insert((TCP, name), value);
            return Ok(0);
        }
        let result = with!(self, now, index, |socket, env| {
            let tcp = &mut socket.tcp;
            match name {
                1 => {
                    tcp.opt.nodelay = value != 0;
                    if value != 0 {
                        tcp.opt.push = true;
                        let push = if tcp.opt.cork { Push::Cork } else { Push::Normal };
                        tcp.push_pending(&env, push);
                    }
                    Ok(0)
                }
                3 => {
                    tcp.opt.cork = value != 0;
                    if value == 0 {
                        if tcp.opt.nodelay {
                            tcp.opt.push = true;
                        }
                        tcp.push_pending(&env, Push::Normal);
                    }
                    Ok(0)
                }
                12 => {
                    tcp.set_quickack(&env, value);
                    Ok(0)
                }
                2 => {
                    if value != 0 && !(i64::from(MSS_LEAST)..=32_767).contains(&value) {
                        Err(Stop::Errno(errno::EINVAL))
                    } else {
                        tcp.opt.user_mss = value as u32;
                        Ok(0)
                    }
                }
                36 => {
                    if (0..=1).contains(&value) {
                        socket.inq = value != 0;
                        Ok(0)
                    } else {
                        Err(Stop::Errno(errno::EINVAL))
                    }
                }
                _ => set_plain(tcp, now, name, value),
            }
        });
        if let Ok(taken) = result
            && taken == i64::MIN
        {
            self.sockets[index].kept.insert((TCP, name), value);
            return Ok(0);
        }
        result
    }

    /// getsockopt(2) of a number.
    pub fn option(&mut self, now: Us, fd: i32, level: i32, name: i32) -> Called {
        if self.udp(fd).is_some() {
            return self.datagram_option(now, fd, (level, name));
        }
        let index = self.index(fd)?;
        let timing = self.sockets[index].tcp.timing_option(&self.env(now), name);
        if let Some(value) = timing.filter(|_| level == TCP) {
            return Ok(value);
        }
        let socket = &mut self.sockets[index];
        let kept = socket.kept.get(&(level, name)).copied();
        let tcp = &mut socket.tcp;
        let opt = &tcp.opt;
        let known = match (level, name) {
            (SOCKET, 4) => {
                let error = std::mem::take(&mut tcp.fate.error);
                i64::from(if error == 0 { std::mem::take(&mut tcp.fate.soft_error) } else { error })
            }
            (SOCKET, 7) => i64::from(opt.sndbuf),
            (SOCKET, 8) => i64::from(tcp.rcv.buffer),
            (SOCKET, 9) => i64::from(opt.keepalive),
            (SOCKET, 18) => i64::from(opt.rcvlowat),
            (SOCKET, 32 | 33) => return bad(errno::ENOPROTOOPT),
            (SOCKET, 30) => i64::from(tcp.state == State::Listen),
            (SOCKET, 37) => i64::from(socket.timestamping),
            (SOCKET, 3) => 1,
            (SOCKET, 38) => 6,
            (SOCKET, 60) => i64::from(socket.zero_copy),
            (SOCKET, 19 | 74) if kept.is_none() => 1,
            (SOCKET, 47) => kept.unwrap_or(-1),
            (SOCKET, 39) => {
                if self.sockets[index].family == Family::V4 {
                    2
                } else {
                    10
                }
            }
            (SOCKET, PEEK_OFF) => opt.peek_off,
            (SOCKET, 16 | 34 | 76 | 83) => return bad(errno::EOPNOTSUPP),
            (SOCKET, 84..) | (TCP, 47..) => return bad(errno::ENOPROTOOPT),
            // TCP_REPAIR_QUEUE, outside of repair.
            (TCP, 20) => return bad(errno::EINVAL),
            (IP, MTU) if matches!(tcp.state, State::Close | State::Listen) => {
                return bad(errno::ENOTCONN);
            }
            (IP, MINTTL) => i64::from(opt.min_ttl),
            // IP_RECVERR, IP_RECVTTL and others that are off unless they were set.
            (IP, 3 | 6..=8 | 11..=13 | 15 | 18 | 19 | 24 | 51) => kept.unwrap_or(0),
            (TCP, 1) => i64::from(opt.nodelay),
            (TCP, 2) => {
                if matches!(tcp.state, State::Close | State::Listen) && opt.user_mss > 0 {
                    i64::from(opt.user_mss)
                } else {
                    i64::from(tcp.snd.mss)
                }
            }
            (TCP, 3) => i64::from(opt.cork),
            (TCP, 9) => defer_seconds(opt.defer_accept),
            (TCP, 10) if matches!(tcp.state, State::Close | State::Listen) => {
                i64::from(opt.window_clamp)
            }
            (TCP, 10) => i64::from(tcp.rcv.clamp),
            (TCP, 24) => (now / MS) as i64,
            (IP, 2) | (IPV6, 16) => {
                if opt.ttl == 0 {
                    64
                } else {
                    i64::from(opt.ttl)
                }
            }
            (TCP, 12) => i64::from(tcp.ack.pingpong == 0),
            (TCP, 16) => i64::from(opt.thin_linear),
            (TCP, 17) => 0,
            (TCP, 25) => i64::from(opt.notsent_lowat as i32),
            (TCP, 36) => i64::from(socket.inq),
            (IP, 1) | (IPV6, 67) => i64::from(opt.tos),
            (IP, 10) => i64::from(opt.pmtu_discover),
            (IP, MTU) => i64::from(self.route.mtu()),
            _ => match kept {
                Some(value) => value,
                None if level == SOCKET || level == TCP => 0,
                None if matches!(level, IP | IPV6) => return bad(errno::ENOPROTOOPT),
                None => return bad(errno::EOPNOTSUPP),
            },
        };
        Ok(known)
    }
}

/// Why an option of the socket cannot have this value.
const fn refused(name: i32, value: i64) -> Option<i32> {
    match name {
        // Bits that 6.18 knows; OPT_ID_TCP is a kind of OPT_ID, OPT_STATS comes without the packet.
        37 | 65 => {
            let bits = value as u32;
            let alone =
                bits & 0x1_0000 != 0 && bits & 0x80 == 0 || bits & 0x1000 != 0 && bits & 0x800 == 0;
            if bits >= 1 << 19 || alone { Some(errno::EINVAL) } else { None }
        }
        // SO_BUSY_POLL, SO_ZEROCOPY, SO_BUF_LOCK, SO_RESERVE_MEM (which needs a control group), SO_TXREHASH.
        46 if value < 0 => Some(errno::EINVAL),
        60 if value < 0 || value > 1 => Some(errno::EINVAL),
        72 if value < 0 || value > 3 => Some(errno::EINVAL),
        73 => Some(if value < 0 { errno::EINVAL } else { errno::EOPNOTSUPP }),
        74 if value < -1 || value > 1 => Some(errno::EINVAL),
        // SO_PASSCRED and its like are AF_UNIX's.
        16 | 34 | 76 | 83 => Some(errno::EOPNOTSUPP),
        3 | 4 | 19 | 30 | 38 | 39 | 78.. => Some(errno::ENOPROTOOPT),
        _ => None,
    }
}

/// Options that are numbers of the connection; `i64::MIN`: kept without effect.
fn set_plain(tcp: &mut Tcp, now: Us, name: i32, value: i64) -> Called {
    let opt = &mut tcp.opt;
    match name {
        4 => {
            if !(1..=32_767).contains(&value) {
                return bad(errno::EINVAL);
            }
            opt.keep_idle = value as Us * SECOND;
            if opt.keepalive && matches!(tcp.state, State::Established | State::CloseWait) {
                let heard = tcp.rcv.heard.max(tcp.rcv.last_data);
                tcp.timers.keepalive = Some((heard + opt.keep_idle).max(now));
            }
        }
        5 if (1..=32_767).contains(&value) => opt.keep_interval = value as Us * SECOND,
        6 if (1..=127).contains(&value) => opt.keep_count = value as u32,
        7 if (1..=127).contains(&value) => opt.syn_retries = value as u32,
        8 => opt.linger2 = Some(value.clamp(-1, 120)),
        9 => opt.defer_accept = defer_retries(value),
        10 => {
            if value == 0 {
                if tcp.state != State::Close {
                    return bad(errno::EINVAL);
                }
                opt.window_clamp = 0;
            } else {
                opt.window_clamp = value.max(2304 / 2) as u32;
                tcp.rcv.clamp = opt.window_clamp;
                tcp.rcv.ssthresh = tcp.rcv.ssthresh.min(opt.window_clamp);
            }
        }
        16 | 17 if !(0..=1).contains(&value) => return bad(errno::EINVAL),
        16 => opt.thin_linear = value != 0,
        18 => {
            if value < 0 {
                return bad(errno::EINVAL);
            }
            opt.user_timeout = value as Us * MS;
        }
        25 => opt.notsent_lowat = value as u32,
        24 => return bad(errno::EPERM),
        // TCP_SAVE_SYN
        27 if !(0..=2).contains(&value) => return bad(errno::EINVAL),
        44 if (1000..=120_000).contains(&value) => opt.rto_max = value as Us * MS,
        // In ticks, two at least.
        45 | 46 if (1001..=DELAY_MAX as i64).contains(&value) => {
            let ticks = (value as Us).next_multiple_of(MS);
            *(if name == 45 { &mut opt.rto_min } else { &mut opt.delack_max }) = ticks;
        }
        5..=7 | 44..=46 => return bad(errno::EINVAL),
        11 | 15 | 21 | 22 | 26 | 28 | 32 | 35 | 39.. => return bad(errno::ENOPROTOOPT),
        _ => return Ok(i64::MIN),
    }
    Ok(0)
}

/// Seconds as SYN-ACK retransmissions, and back.
fn defer_retries(seconds: i64) -> u32 {
    let (mut count, mut period, mut step) = (0, 1, 1);
    if seconds <= 0 {
        return 0;
    }
    count += 1;
    while seconds > period && count < 255 {
        count += 1;
        step = (step * 2).min(120);
        period += step;
    }
    count
}

fn defer_seconds(retries: u32) -> i64 {
    let (mut period, mut step) = (0, 1);
    for _ in 0..retries {
        period += step;
        step = (step * 2).min(120);
    }
    period
}

impl Tcp {
    /// Options that are times or counts of tries, the system's where the program set none.
    fn timing_option(&self, env: &Env<'_>, name: i32) -> Option<i64> {
        let opt = &self.opt;
        let or = |set: i64, name| if set > 0 { set } else { env.sysctls.of(name) };
        Some(match name {
            4 => (self.keep_idle(env) / SECOND) as i64,
            5 => or((opt.keep_interval / SECOND) as i64, "tcp_keepalive_intvl"),
            6 => or(i64::from(opt.keep_count), "tcp_keepalive_probes"),
            7 => or(i64::from(opt.syn_retries), "tcp_syn_retries"),
            8 => match opt.linger2 {
                Some(set) if set != 0 => set,
                _ => env.sysctls.of("tcp_fin_timeout"),
            },
            18 => (opt.user_timeout / MS) as i64,
            44 => (self.rto_max(env) / MS) as i64,
            45 => or(opt.rto_min as i64, "tcp_rto_min_us"),
            46 if opt.delack_max > 0 => opt.delack_max as i64,
            46 => DELAY_MAX as i64,
            _ => return None,
        })
    }

    /// SO_RCVLOWAT: at most half of the buffer, which grows for it unless the program chose its size.
    fn set_low_mark(&mut self, value: i64, most: u32) {
        let cap = if self.opt.rcvbuf_locked { self.rcv.buffer >> 1 } else { most >> 1 };
        let value = if value < 0 { u32::MAX } else { value as u32 }.min(cap);
        self.opt.rcvlowat = value.max(1);
        let memory = ((u64::from(value) << 8) / u64::from(self.rcv.ratio.max(1))) as u32;
        if !self.opt.rcvbuf_locked && memory > self.rcv.buffer {
            self.rcv.buffer = memory;
            self.rcv.clamp = self.rcv.clamp.max(value);
        }
    }

    /// TCP_QUICKACK.
    fn set_quickack(&mut self, env: &Env<'_>, value: i64) {
        if value == 0 {
            self.ack.pingpong = env.sysctls.of("tcp_pingpong_thresh") as u32;
            return;
        }
        self.ack.pingpong = 0;
        if matches!(self.state, State::Established | State::CloseWait) && self.ack.scheduled {
            self.ack.pushed = true;
            self.after_read(env, 1);
            if value & 1 == 0 {
                self.ack.pingpong = env.sysctls.of("tcp_pingpong_thresh") as u32;
            }
        }
    }
}

/// SO_PEEK_OFF.
const PEEK_OFF: i32 = 42;
/// IP_HDRINCL, IP_MTU and IP_MINTTL.
const HDRINCL: i32 = 3;
const MTU: i32 = 14;
const MINTTL: i32 = 21;
