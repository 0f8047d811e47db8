//! The packet that a parcel travels in, as a value: bytes and the number of descriptors beside them.
//!
//! A fixed label in little-endian, then up to three sections of bytes. Sections that are too long together travel in a
//! file of their own beside the packet, one behind the other. The descriptors are, in this order: the connection; the file
//! of the content, if there is one; the file with the sections, if there is one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::parcel::{Content, Parcel, Rest, StoredBody, Then};
use crate::children::Millis;
use crate::error::Error;

/// The longest packet.
pub const MAX_PACKET: usize = 16 * 1024;

/// The length of a label.
pub const LABEL: usize = 72;

/// Up to how many bytes of sections travel in the packet itself.
pub const MOST_INLINE: usize = MAX_PACKET - LABEL;

/// How many sections there are, used or not.
pub const SECTIONS: usize = 3;

/// The largest offset in a file.
const MAX_OFFSET: u64 = i64::MAX.unsigned_abs();

const VERSION: u8 = 1;
const SPILLED: u8 = 1;
const FILE: u8 = 2;

/// What a [`Content`] is, without what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Content::Waiting`]
    Waiting,
    /// [`Content::Request`] whose body was not read.
    Request,
    /// [`Content::Request`] with its body, which is in the second section or in the file.
    RequestWithBody,
    /// [`Content::Response`]
    Response(Then),
    /// [`Content::Close`]
    Close,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Request,
        Self::RequestWithBody,
        Self::Response(Then::KeepAlive),
        Self::Response(Then::Close),
        Self::Close,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Waiting => 0,
            Self::Request => 1,
            Self::RequestWithBody => 2,
            Self::Response(Then::KeepAlive) => 3,
            Self::Response(Then::Close) => 4,
            Self::Close => 5,
        }
    }
}

/// All of a parcel but its bytes and its descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it is about.
    pub kind: Kind,
    /// [`Parcel::peer`]
    pub peer: Option<IpAddr>,
    /// [`Parcel::served`]
    pub served: u32,
    /// [`Parcel::since`]
    pub since: Millis,
    /// The lengths of the sections: [`Parcel::bytes`]; a body, or [`Rest::before`]; [`Rest::after`].
    pub sections: [u64; SECTIONS],
    /// Offset and length of the part of the content's file, if there is one.
    pub file: Option<(u64, u64)>,
}

/// The sections of a parcel.
#[must_use]
pub fn sections(parcel: &Parcel) -> [&[u8]; SECTIONS] {
    let (second, third): (&[u8], &[u8]) = match &parcel.content {
        Content::Request { body: Some(StoredBody::Memory(body)) } => (body, &[]),
        Content::Response { rest, .. } => (&rest.before, &rest.after),
        _ => (&[], &[]),
    };
    [&parcel.bytes, second, third]
}

impl Label {
    /// The label of a parcel.
    #[must_use]
    pub fn of(parcel: &Parcel) -> Self {
        let (kind, file) = match &parcel.content {
            Content::Waiting => (Kind::Waiting, None),
            Content::Request { body: None } => (Kind::Request, None),
            Content::Request { body: Some(StoredBody::Memory(_)) } => (Kind::RequestWithBody, None),
            Content::Request { body: Some(StoredBody::File { length, .. }) } => {
                (Kind::RequestWithBody, Some((0, *length)))
            }
            Content::Response { rest: Rest { file, .. }, then } => {
                (Kind::Response(*then), file.as_ref().map(|part| (part.offset, part.length)))
            }
            Content::Close => (Kind::Close, None),
        };
        let Parcel { peer, served, since, .. } = *parcel;
        Self { kind, peer, served, since, sections: sections(parcel).map(|section| section.len() as u64), file }
    }

    /// The length of all sections together; the largest number there is if that does not fit.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sections.iter().fold(0, |total, length| total.saturating_add(*length))
    }

    /// Whether the sections are too long for the packet.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.total() > MOST_INLINE as u64
    }

    /// How many descriptors belong to it.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        1 + usize::from(self.file.is_some()) + usize::from(self.is_spilled())
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; LABEL] {
        let mut bytes = [0; LABEL];
        let (family, address) = match self.peer {
            None => (0, [0; 16]),
            Some(IpAddr::V4(address)) => {
                let mut padded = [0; 16];
                padded[..4].copy_from_slice(&address.octets());
                (4, padded)
            }
            Some(IpAddr::V6(address)) => (6, address.octets()),
        };
        let flags = if self.is_spilled() { SPILLED } else { 0 } | if self.file.is_some() { FILE } else { 0 };
        bytes[..4].copy_from_slice(&[VERSION, self.kind.code(), flags, family]);
        bytes[4..8].copy_from_slice(&self.served.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.since.to_le_bytes());
        bytes[16..32].copy_from_slice(&address);
        let (offset, length) = self.file.unwrap_or_default();
        for (place, number) in bytes[32..].chunks_exact_mut(8).zip(self.sections.iter().chain([&offset, &length])) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads a packet that came with so many descriptors. Gives back the bytes behind the label too, which are the
    /// sections unless these are spilled.
    pub fn decode(packet: &[u8], descriptors: usize) -> Result<(Self, &[u8]), Error> {
        let (label, rest) = packet.split_first_chunk::<LABEL>().ok_or(Error::Parcel("it is too short"))?;
        let label = Self::read(label).ok_or(Error::Parcel("its label makes no sense"))?;
        if descriptors != label.descriptors() {
            return Err(Error::Parcel("it has another number of descriptors than it says"));
        }
        let inline = if label.is_spilled() { 0 } else { label.total() };
        if rest.len() as u64 != inline {
            return Err(Error::Parcel("it has another length than it says"));
        }
        Ok((label, rest))
    }

    fn read(bytes: &[u8; LABEL]) -> Option<Self> {
        let &[version, kind, flags, family, ..] = bytes;
        let number = |at: usize| bytes[at..].first_chunk().map(|field| u64::from_le_bytes(*field));
        let address: [u8; 16] = *bytes[16..].first_chunk()?;
        let peer = match family {
            0 => None,
            4 => Some(IpAddr::V4(Ipv4Addr::from(*address.first_chunk::<4>()?))),
            6 => Some(IpAddr::V6(Ipv6Addr::from(address))),
            _ => return None,
        };
        let label = Self {
            kind: Kind::ALL.into_iter().find(|known| known.code() == kind)?,
            peer,
            served: u32::from_le_bytes(*bytes[4..].first_chunk()?),
            since: number(8)?,
            sections: [number(32)?, number(40)?, number(48)?],
            file: (flags & FILE != 0).then_some((number(56)?, number(64)?)),
        };
        // There is one way to write each label, so whatever differs from it is a mistake.
        (version == VERSION && label.is_sensible() && label.encode() == *bytes).then_some(label)
    }

    /// Whether there is a parcel that has this label.
    fn is_sensible(&self) -> bool {
        let [_, second, third] = self.sections;
        let fits = match self.kind {
            Kind::Waiting | Kind::Request | Kind::Close => second == 0 && third == 0 && self.file.is_none(),
            Kind::RequestWithBody => third == 0 && self.file.is_none_or(|(offset, _)| offset == 0 && second == 0),
            Kind::Response(_) => true,
        };
        let ends =
            self.file.is_none_or(|(offset, length)| offset.checked_add(length).is_some_and(|end| end <= MAX_OFFSET));
        fits && ends && self.total() <= MAX_OFFSET
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
