//! Error numbers of Linux, with their names and texts.

macro_rules! errors {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: i32 = $value;)*

        /// The name of an error.
        pub fn name(error: i32) -> Option<&'static str> {
            match error { $($value => Some(stringify!($name)),)* _ => None }
        }

        /// The error of a name.
        pub fn named(name: &str) -> Option<i32> {
            match name {
                $(stringify!($name) => Some($value),)*
                // The same number.
                "EWOULDBLOCK" => Some(EAGAIN),
                "ENOTSUP" => Some(EOPNOTSUPP),
                _ => None,
            }
        }

        /// What an error says.
        pub fn text(error: i32) -> Option<&'static str> {
            match error { $($value => Some($text),)* _ => None }
        }
    };
}

errors! {
    EPERM = 1, "Operation not permitted";
    ENOENT = 2, "No such file or directory";
    EINTR = 4, "Interrupted system call";
    EIO = 5, "Input/output error";
    EBADF = 9, "Bad file descriptor";
    EAGAIN = 11, "Resource temporarily unavailable";
    ENOMEM = 12, "Cannot allocate memory";
    EACCES = 13, "Permission denied";
    EFAULT = 14, "Bad address";
    EBUSY = 16, "Device or resource busy";
    EEXIST = 17, "File exists";
    EINVAL = 22, "Invalid argument";
    ENFILE = 23, "Too many open files in system";
    EMFILE = 24, "Too many open files";
    ENOTTY = 25, "Inappropriate ioctl for device";
    ESPIPE = 29, "Illegal seek";
    EPIPE = 32, "Broken pipe";
    ENOMSG = 42, "No message of desired type";
    EPROTO = 71, "Protocol error";
    EOVERFLOW = 75, "Value too large for defined data type";
    ENOTSOCK = 88, "Socket operation on non-socket";
    EDESTADDRREQ = 89, "Destination address required";
    EMSGSIZE = 90, "Message too long";
    ENOPROTOOPT = 92, "Protocol not available";
    EOPNOTSUPP = 95, "Operation not supported";
    EADDRINUSE = 98, "Address already in use";
    EADDRNOTAVAIL = 99, "Cannot assign requested address";
    ENETDOWN = 100, "Network is down";
    ENETUNREACH = 101, "Network is unreachable";
    ECONNABORTED = 103, "Software caused connection abort";
    ECONNRESET = 104, "Connection reset by peer";
    ENOBUFS = 105, "No buffer space available";
    EISCONN = 106, "Transport endpoint is already connected";
    ENOTCONN = 107, "Transport endpoint is not connected";
    ESHUTDOWN = 108, "Cannot send after transport endpoint shutdown";
    ETIMEDOUT = 110, "Connection timed out";
    ECONNREFUSED = 111, "Connection refused";
    EHOSTDOWN = 112, "Host is down";
    EHOSTUNREACH = 113, "No route to host";
    EALREADY = 114, "Operation already in progress";
    EINPROGRESS = 115, "Operation now in progress";
}
