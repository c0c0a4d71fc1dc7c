//! Transport parameters: what each end says of itself in the handshake (docs/rudp.md section 2).

use std::fmt;

use super::{Malformed, RESET_TOKEN, Reader, Writer, varint};

/// All of them together at most, bytes.
const ENCODED_MAX: usize = 512;

/// Program and application bytes at most.
const OPAQUE_MAX: usize = 32;

/// What one end says of itself; a parameter that it leaves out has its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The largest datagram it will receive, bytes.
    pub datagram_max: u64,
    /// Bytes of streams and parcels that it takes at first.
    pub max_data: u64,
    /// Bytes of each stream that it takes at first.
    pub max_stream_data: u64,
    /// Streams that it lets the peer open at first.
    pub max_streams: u64,
    /// The largest parcel that it takes, bytes.
    pub parcel_max: u64,
    /// After how long without an authentic packet it gives up, ms.
    pub idle_ms: u64,
    /// The least delay of an ACK that it can keep, us.
    pub ack_delay_least_us: u64,
    /// How many paths it takes at once.
    pub paths_max: u64,
    /// What a RESET of it will carry.
    pub reset_token: Option<[u8; RESET_TOKEN]>,
    /// Program and version, ASCII.
    pub program: Vec<u8>,
    /// For the application.
    pub application: Vec<u8>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            datagram_max: NUMBERS[0].default,
            max_data: NUMBERS[1].default,
            max_stream_data: NUMBERS[2].default,
            max_streams: NUMBERS[3].default,
            parcel_max: NUMBERS[4].default,
            idle_ms: NUMBERS[5].default,
            ack_delay_least_us: NUMBERS[6].default,
            paths_max: NUMBERS[7].default,
            reset_token: None,
            program: Vec::new(),
            application: Vec::new(),
        }
    }
}

/// A parameter that is a number; its id is its place in the table of section 2.
struct Number {
    default: u64,
    least: u64,
    most: u64,
}

const fn number(default: u64, least: u64, most: u64) -> Number {
    Number { default, least, most }
}

const NUMBERS: [Number; 8] = [
    number(1472, 1200, 65_507),
    number(24 << 20, 64 << 10, 1 << 40),
    number(8 << 20, 16 << 10, 1 << 40),
    number(256, 1, 65_536),
    number(16_000_000, 1, 1 << 24),
    number(30_000, 1_000, 600_000),
    number(1_000, 1, 25_000),
    number(8, 1, 8),
];

/// Why a peer's parameters cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParametersError {
    /// Cut off, or longer than 512 bytes.
    Malformed,
    /// The parameter stands there twice.
    Twice(u64),
    /// The parameter's value is not one that is accepted.
    OutOfRange(u64),
}

impl fmt::Display for ParametersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the peer's transport parameters are cut off"),
            Self::Twice(id) => write!(f, "the peer gives transport parameter {id} twice"),
            Self::OutOfRange(id) => {
                write!(f, "the peer gives transport parameter {id} a value that is not accepted")
            }
        }
    }
}

impl std::error::Error for ParametersError {}

impl From<Malformed> for ParametersError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Parameters {
    fn numbers(&mut self) -> [&mut u64; 8] {
        [
            &mut self.datagram_max,
            &mut self.max_data,
            &mut self.max_stream_data,
            &mut self.max_streams,
            &mut self.parcel_max,
            &mut self.idle_ms,
            &mut self.ack_delay_least_us,
            &mut self.paths_max,
        ]
    }

    /// The bytes on the wire; what has its default is left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ENCODED_MAX];
        let mut writer = Writer::new(&mut bytes);
        for (id, (value, known)) in self.clone().numbers().into_iter().zip(&NUMBERS).enumerate() {
            if *value != known.default {
                writer.put_varint(id as u64);
                writer.put_varint(varint::len(*value) as u64);
                writer.put_varint(*value);
            }
        }
        let token = self.reset_token.as_ref().map_or(&[][..], |token| &token[..]);
        for (id, value) in [(8, token), (9, &self.program), (10, &self.application)] {
            if !value.is_empty() {
                writer.put_varint(id);
                writer.put_varint(value.len() as u64);
                writer.put_bytes(value);
            }
        }
        let len = writer.position();
        bytes.truncate(len);
        bytes
    }

    /// Reads what [`Self::encode`] writes. Unknown parameters are passed over.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParametersError> {
        if bytes.len() > ENCODED_MAX {
            return Err(ParametersError::Malformed);
        }
        let mut parameters = Self::default();
        let mut reader = Reader::new(bytes);
        let mut seen = 0_u16;
        while !reader.is_empty() {
            let id = reader.varint()?;
            let len = reader.varint()?;
            let value = reader.take(len)?;
            if id > 10 {
                continue;
            }
            if seen >> id & 1 == 1 {
                return Err(ParametersError::Twice(id));
            }
            seen |= 1 << id;
            parameters.set(id, value)?;
        }
        Ok(parameters)
    }

    fn set(&mut self, id: u64, value: &[u8]) -> Result<(), ParametersError> {
        let wrong = ParametersError::OutOfRange(id);
        match id {
            8 => self.reset_token = Some(value.try_into().map_err(|_| wrong)?),
            9 | 10 if value.len() > OPAQUE_MAX => return Err(wrong),
            9 if !value.is_ascii() => return Err(wrong),
            9 => self.program = value.to_vec(),
            10 => self.application = value.to_vec(),
            _ => {
                let mut reader = Reader::new(value);
                let number = reader.varint()?;
                let known = &NUMBERS[id as usize];
                if !reader.is_empty() || !(known.least..=known.most).contains(&number) {
                    return Err(wrong);
                }
                *self.numbers()[id as usize] = number;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_take_no_bytes() {
        assert_eq!(Parameters::default().encode(), b"");
        assert_eq!(Parameters::decode(b""), Ok(Parameters::default()));
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let parameters = Parameters {
            datagram_max: 9000,
            max_data: 1 << 40,
            max_stream_data: 16 << 10,
            max_streams: 1,
            parcel_max: 1 << 24,
            idle_ms: 1000,
            ack_delay_least_us: 25_000,
            paths_max: 2,
            reset_token: Some([3; RESET_TOKEN]),
            program: b"acklab 0.1.0".to_vec(),
            application: vec![1],
        };
        assert_eq!(Parameters::decode(&parameters.encode()), Ok(parameters));
    }

    #[test]
    fn each_limit_of_the_table_holds() {
        for (id, known) in NUMBERS.iter().enumerate() {
            for (value, good) in [
                (known.least, true),
                (known.most, true),
                (known.least - 1, false),
                (known.most + 1, false),
            ] {
                let mut bytes = [0; 16];
                let mut writer = Writer::new(&mut bytes);
                writer.put_varint(id as u64);
                writer.put_varint(varint::len(value) as u64);
                writer.put_varint(value);
                let result = Parameters::decode(writer.written());
                let wrong = Err(ParametersError::OutOfRange(id as u64));
                assert_eq!(result.is_ok(), good, "parameter {id} = {value}");
                assert!(good || result == wrong);
            }
        }
    }

    #[test]
    fn a_parameter_stands_there_once_and_unknown_ones_are_passed_over() {
        let twice = [9, 1, b'a', 9, 1, b'b'];
        assert_eq!(Parameters::decode(&twice), Err(ParametersError::Twice(9)));
        let unknown = [0x3f, 2, 0, 0, 10, 1, 5];
        let read = Parameters::decode(&unknown).expect("unknown ones are no error");
        assert_eq!(read.application, [5]);
        assert_eq!(Parameters::decode(&[9, 4, b'a']), Err(ParametersError::Malformed));
        assert_eq!(Parameters::decode(&[0x3f; 513]), Err(ParametersError::Malformed));
    }
}
