//! Memory and the window to announce.

use crate::settings::Env;
use crate::tcp::Tcp;

/// MSS of a peer that announced none.
pub(crate) const MSS_DEFAULT: u32 = 536;

/// Least MSS that a program may ask for, and where the estimate of the peer's starts at the least.
pub(crate) const MSS_LEAST: u32 = 88;

/// Memory that a packet of `len` bytes and `header` bytes of headers takes, as it comes from a TUN device: its
/// linear buffer, rounded up as the allocator does, and the descriptor.
pub(crate) const fn truesize(len: u32, header: u32) -> u32 {
    buffer(len, header) + 256
}

/// What such a packet's buffer has room for behind it.
pub(crate) const fn tail_room(len: u32, header: u32) -> u32 {
    buffer(len, header) - needed(len, header)
}

/// Bytes that a buffer of one page holds.
pub(crate) const PAGE_DATA: u32 = 4096 - 320;

/// Memory of a buffer that `bytes` are copied to, and what it has room for behind them.
pub(crate) fn copied_size(bytes: u32) -> (u32, u32) {
    let needed = bytes.next_multiple_of(64) + 320;
    let size = if needed <= SMALL_HEAD { SMALL_HEAD } else { needed.next_power_of_two() };
    (size + 256, size - 320 - bytes)
}

/// Head room, the packet, and what the kernel keeps at a buffer's end.
const fn needed(len: u32, header: u32) -> u32 {
    64 + header + len + 320
}

/// Small packets have buffers of their own size.
const SMALL_HEAD: u32 = 576;

const fn buffer(len: u32, header: u32) -> u32 {
    let needed = needed(len, header);
    if needed <= SMALL_HEAD {
        SMALL_HEAD
    } else if needed <= 1024 {
        1024
    } else if needed <= 2048 {
        2048
    } else if needed <= 4096 {
        4096
    } else {
        needed.next_multiple_of(4096)
    }
}

/// Memory and windows.
impl Tcp {
    /// Payload that `space` bytes of memory hold.
    pub fn window_of(&self, space: i64) -> u32 {
        if space <= 0 { 0 } else { ((space as u64 * u64::from(self.rcv.ratio)) >> 8) as u32 }
    }

    /// Memory of the receive buffer in use, that of the error queue included.
    pub const fn allocated(&self) -> u32 {
        self.rcv.memory + self.errors.memory()
    }

    /// Free space for payload.
    pub fn space(&self) -> u32 {
        self.window_of(i64::from(self.rcv.buffer) - i64::from(self.allocated()))
    }

    /// Space for payload when nothing waits.
    pub fn full_space(&self) -> u32 {
        self.window_of(i64::from(self.rcv.buffer))
    }

    /// The window that the buffer allows (RFC 9293 section 3.8.6.2.2, Linux's rules).
    pub fn select_window(&mut self, env: &Env<'_>) -> u32 {
        let mut mss = self.ack.rcv_mss;
        let mut free = self.space();
        let allowed = self.full_space();
        let full = self.rcv.clamp.min(allowed);
        if mss > full {
            mss = full;
            if mss == 0 {
                return 0;
            }
        }
        let scale = self.terms.receive_scale;
        let shrinks = self.may_shrink(env);
        if shrinks {
            free = free >> scale << scale;
        }
        if free < full >> 1 {
            self.ack.quick = 0;
            free = free >> scale << scale;
            if free < allowed >> 4 || free < mss || shrinks && free >> scale == 0 {
                return 0;
            }
        }
        if shrinks && free <= self.rcv.ssthresh {
            return free;
        }
        free = free.min(self.rcv.ssthresh);
        if scale > 0 {
            return free.next_multiple_of(1 << scale);
        }
        let window = self.rcv.wnd;
        if window + mss <= free && mss > 0 || window > free {
            free / mss.max(1) * mss
        } else if mss == full && free > window + (full >> 1) {
            free
        } else {
            window
        }
    }

    /// Whether the window's right edge may go back (RFC 7323 section 2.4), which only a scaled one does.
    pub(crate) fn may_shrink(&self, env: &Env<'_>) -> bool {
        self.terms.receive_scale > 0 && env.sysctls.is_on("tcp_shrink_window")
    }

    /// Sets the largest window; a smaller one holds at once.
    pub fn clamp_window(&mut self, value: u32) {
        let value = value.max(2304 / 2);
        if value < self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.min(value);
        } else if value > self.rcv.clamp {
            self.rcv.ssthresh = self.rcv.ssthresh.max(self.rcv.wnd.min(value));
        }
        self.rcv.clamp = value;
        self.rcv.space = self.rcv.space.min(value);
    }

    /// The window's threshold grows with what arrives in well-filled buffers.
    pub(crate) fn grow_window(&mut self, env: &Env<'_>, len: u32, size: u32) {
        let room = i64::from(self.rcv.clamp.min(self.space())) - i64::from(self.rcv.ssthresh);
        if room <= 0 {
            return;
        }
        let step = if self.window_of(i64::from(size)) <= len {
            2 * self.terms.advmss
        } else {
            let most = env.sysctls.nth("tcp_rmem", 2);
            let (mut size, mut window) = (size >> 1, self.window_of(most) >> 1);
            let mut step = 0;
            while self.rcv.ssthresh <= window {
                if size <= len {
                    step = 2 * self.ack.rcv_mss;
                    break;
                }
                size >>= 1;
                window >>= 1;
            }
            step
        };
        if step > 0 {
            self.rcv.ssthresh += step.max(2 * len).min(room as u32);
            self.ack.quick |= 1;
        }
    }

    /// The buffer's first split between window and overhead.
    pub fn init_buffers(&mut self, env: &Env<'_>) {
        if !self.opt.sndbuf_locked {
            self.expand_sndbuf(env);
        }
        let advmss = self.terms.advmss;
        self.rcv.space_at = env.now;
        self.rcv.space_seq = self.rcv.copied;
        let most = self.full_space();
        if self.rcv.clamp >= most {
            self.rcv.clamp = most;
            let app = env.sysctls.of("tcp_app_win");
            if app > 0 && most > 4 * advmss {
                let share = if app < 32 { most >> app } else { 0 };
                self.rcv.clamp = (most - share).max(4 * advmss);
            }
        }
        if env.sysctls.of("tcp_app_win") > 0
            && self.rcv.clamp > 2 * advmss
            && self.rcv.clamp + advmss > most
        {
            self.rcv.clamp = (most.saturating_sub(advmss)).max(2 * advmss);
        }
        self.rcv.ssthresh = self.rcv.ssthresh.min(self.rcv.clamp);
        self.rcv.space = self.rcv.ssthresh.min(self.rcv.wnd).min(10 * advmss);
    }

    /// Room for twice the congestion window.
    pub fn expand_sndbuf(&mut self, env: &Env<'_>) {
        let buffer = self.terms.mss_clamp.max(self.snd.mss) + env.route.header_room + 320;
        let per = buffer.next_power_of_two() + 256;
        let packets = env.route.initial_window().max(self.window.cwnd).max(self.rec.reordering + 1);
        let wanted = 2 * u64::from(packets) * u64::from(per);
        if u64::from(self.opt.sndbuf) < wanted {
            self.opt.sndbuf = wanted.min(env.sysctls.nth("tcp_wmem", 2) as u64) as u32;
        }
    }

    /// Where the estimate of the peer's segment size starts.
    pub fn init_rcv_mss(&mut self) {
        let hint = self.terms.advmss.min(self.snd.mss).min(self.rcv.wnd / 2);
        self.ack.rcv_mss = hint.clamp(MSS_LEAST, MSS_DEFAULT);
    }
}
