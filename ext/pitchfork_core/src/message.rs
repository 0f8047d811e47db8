//! What the monitor and its children say to each other, and the frame it travels in.
//!
//! One message is one `SOCK_SEQPACKET` packet: a tag byte, then the fields as little-endian integers. A request that
//! starts a child carries the child's end of its own channel as an `SCM_RIGHTS` descriptor beside the frame.

use std::fmt;

use crate::children::{Kind, Pid, Token};
use crate::error::Error;

/// The longest frame.
pub const MAX_FRAME: usize = 160;

/// The longest text in a frame, in bytes.
const LONGEST_TEXT: usize = MAX_FRAME - 1;

/// From the monitor to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To a mold: fork a worker or the service.
    Spawn {
        /// Names the spawn.
        token: Token,
        /// What the child is for.
        kind: Kind,
        /// The child's line on the scoreboard.
        slot: u32,
        /// The child's generation, which is the mold's.
        generation: u32,
    },
    /// To a worker: fork a sibling that becomes the mold of the next generation.
    Promote {
        /// Names the spawn.
        token: Token,
        /// The new mold's line on the scoreboard.
        slot: u32,
        /// The new mold's generation.
        generation: u32,
    },
    /// Finish the work in hand and exit.
    Leave {
        /// Serve first what waits in the listeners' queues: the whole server stops, nobody else will.
        drain: bool,
    },
    /// Reopen the files that are logged to: somebody has renamed them. The reactor, which does not know their names,
    /// gets the monitor's standard error beside it.
    ReopenLogs,
    /// To the reactor, which has been told to leave: nobody else is left, so nobody will send it anything or take
    /// anything from it. Exit when the responses in hand are sent.
    Conclude,
}

/// From a child to the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Said on a new child's channel by the process that forked it, in case the child never gets to speak.
    Forked {
        /// The child's pid.
        pid: Pid,
    },
    /// The child's own first words.
    Registered {
        /// Its own pid.
        pid: Pid,
    },
    /// A mold's hooks have returned, and it now collects garbage.
    Preparing,
    /// A worker accepts connections; a mold accepts orders.
    Ready,
    /// A forker could not do what it was told.
    SpawnFailed {
        /// The spawn that it was told to do.
        token: Token,
        /// Whether it refused because its process is no longer safe to fork.
        unsafe_to_fork: bool,
    },
    /// The refork condition of a worker is met.
    ConditionMet,
    /// A worker has a connection for the reactor, and there is none.
    ReactorWanted,
    /// A line for the log, of a child that has no logger of its own.
    Complaint(Text),
    /// The same, of what is as it should be and only matters to whoever looks into it.
    Remark(Text),
}

/// A short text that travels in a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; LONGEST_TEXT],
    len: usize,
}

impl Text {
    /// What fits of a text, which is cut between two characters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let len = (0..=text.len().min(LONGEST_TEXT)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let mut bytes = [0; LONGEST_TEXT];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Order {
    /// Its frame.
    #[must_use]
    pub fn encode(self) -> Frame {
        match self {
            Self::Spawn { token, kind, slot, generation } => {
                Frame::new(1).u64(token.0).u32(kind.code()).u32(slot).u32(generation)
            }
            Self::Promote { token, slot, generation } => Frame::new(2).u64(token.0).u32(slot).u32(generation),
            Self::Leave { drain } => Frame::new(3).u32(u32::from(drain)),
            Self::ReopenLogs => Frame::new(4),
            Self::Conclude => Frame::new(5),
        }
    }

    /// Reads a frame.
    pub fn decode(frame: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(frame)?;
        let order = match fields.tag {
            1 => Self::Spawn {
                token: Token(fields.u64()?),
                kind: Kind::from_code(fields.u32()?),
                slot: fields.u32()?,
                generation: fields.u32()?,
            },
            2 => Self::Promote { token: Token(fields.u64()?), slot: fields.u32()?, generation: fields.u32()? },
            3 => Self::Leave { drain: fields.flag()? },
            4 => Self::ReopenLogs,
            5 => Self::Conclude,
            tag => return Err(Error::Frame { tag, length: frame.len() }),
        };
        fields.end(order)
    }
}

impl Report {
    /// Its frame.
    #[must_use]
    pub fn encode(self) -> Frame {
        match self {
            Self::Forked { pid } => Frame::new(16).u32(pid.cast_unsigned()),
            Self::Registered { pid } => Frame::new(17).u32(pid.cast_unsigned()),
            Self::Preparing => Frame::new(18),
            Self::Ready => Frame::new(19),
            Self::SpawnFailed { token, unsafe_to_fork } => Frame::new(20).u64(token.0).u32(u32::from(unsafe_to_fork)),
            Self::ConditionMet => Frame::new(21),
            Self::ReactorWanted => Frame::new(22),
            Self::Complaint(text) => Frame::new(23).put(text.as_bytes()),
            Self::Remark(text) => Frame::new(24).put(text.as_bytes()),
        }
    }

    /// Reads a frame.
    pub fn decode(frame: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(frame)?;
        let report = match fields.tag {
            16 => Self::Forked { pid: fields.u32()?.cast_signed() },
            17 => Self::Registered { pid: fields.u32()?.cast_signed() },
            18 => Self::Preparing,
            19 => Self::Ready,
            20 => Self::SpawnFailed { token: Token(fields.u64()?), unsafe_to_fork: fields.flag()? },
            21 => Self::ConditionMet,
            22 => Self::ReactorWanted,
            23 => Self::Complaint(fields.text()?),
            24 => Self::Remark(fields.text()?),
            tag => return Err(Error::Frame { tag, length: frame.len() }),
        };
        fields.end(report)
    }
}

/// An encoded message.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    bytes: [u8; MAX_FRAME],
    len: usize,
}

impl Frame {
    fn new(tag: u8) -> Self {
        let mut bytes = [0; MAX_FRAME];
        bytes[0] = tag;
        Self { bytes, len: 1 }
    }

    fn put(mut self, field: &[u8]) -> Self {
        self.bytes[self.len..self.len + field.len()].copy_from_slice(field);
        self.len += field.len();
        self
    }

    fn u32(self, field: u32) -> Self {
        self.put(&field.to_le_bytes())
    }

    fn u64(self, field: u64) -> Self {
        self.put(&field.to_le_bytes())
    }

    /// The bytes to send.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

struct Fields<'f> {
    tag: u8,
    length: usize,
    rest: &'f [u8],
}

impl<'f> Fields<'f> {
    fn new(frame: &'f [u8]) -> Result<Self, Error> {
        let (&tag, rest) = frame.split_first().ok_or(Error::Frame { tag: 0, length: 0 })?;
        Ok(Self { tag, length: frame.len(), rest })
    }

    fn malformed(&self) -> Error {
        Error::Frame { tag: self.tag, length: self.length }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (field, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    /// All that is left.
    fn text(&mut self) -> Result<Text, Error> {
        let text = std::str::from_utf8(std::mem::take(&mut self.rest)).map_err(|_| self.malformed())?;
        if text.len() > LONGEST_TEXT { Err(self.malformed()) } else { Ok(Text::new(text)) }
    }

    fn end<M>(self, message: M) -> Result<M, Error> {
        if self.rest.is_empty() { Ok(message) } else { Err(self.malformed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn orders() -> impl Strategy<Value = Order> {
        prop_oneof![
            any::<(u64, u32, u32, u32)>().prop_map(|(token, code, slot, generation)| Order::Spawn {
                token: Token(token),
                kind: Kind::from_code(code),
                slot,
                generation
            }),
            any::<(u64, u32, u32)>().prop_map(|(token, slot, generation)| Order::Promote {
                token: Token(token),
                slot,
                generation
            }),
            any::<bool>().prop_map(|drain| Order::Leave { drain }),
            Just(Order::ReopenLogs),
            Just(Order::Conclude),
        ]
    }

    fn reports() -> impl Strategy<Value = Report> {
        prop_oneof![
            any::<i32>().prop_map(|pid| Report::Forked { pid }),
            any::<i32>().prop_map(|pid| Report::Registered { pid }),
            Just(Report::Preparing),
            Just(Report::Ready),
            any::<(u64, bool)>()
                .prop_map(|(token, unsafe_to_fork)| Report::SpawnFailed { token: Token(token), unsafe_to_fork }),
            Just(Report::ConditionMet),
            Just(Report::ReactorWanted),
            any::<String>().prop_map(|text| Report::Complaint(Text::new(&text))),
            any::<String>().prop_map(|text| Report::Remark(Text::new(&text))),
        ]
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        assert_eq!(Text::new("short").to_string(), "short");
        assert_eq!(Text::new(&"é".repeat(100)).to_string(), "é".repeat(79));
        assert!(Report::decode(&[&[23][..], &[b'a'; MAX_FRAME]].concat()).is_err());
        assert!(Report::decode(&[23, 0xff]).is_err());
    }

    proptest! {
        #[test]
        fn an_order_survives_its_frame(order in orders()) {
            prop_assert_eq!(Order::decode(order.encode().as_bytes()).unwrap(), order);
        }

        #[test]
        fn a_report_survives_its_frame(report in reports()) {
            prop_assert_eq!(Report::decode(report.encode().as_bytes()).unwrap(), report);
        }

        #[test]
        fn a_frame_that_was_cut_or_grew_is_refused(report in reports(), order in orders(), extra in any::<u8>()) {
            let mut frame = report.encode().as_bytes().to_vec();
            frame.push(extra);
            // Of a text nobody knows how long it was.
            prop_assert!(Report::decode(&frame).is_err() || matches!(report, Report::Complaint(_) | Report::Remark(_)));
            let frame = order.encode();
            prop_assert!(Order::decode(&frame.as_bytes()[..frame.as_bytes().len() - 1]).is_err());
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Order::decode(&bytes);
            let _ = Report::decode(&bytes);
        }
    }
}
