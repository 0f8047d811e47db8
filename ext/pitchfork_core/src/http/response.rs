//! The head of a response.

use std::io::Write;
use std::ops::Range;

use super::bytes::{is_control, is_token_text};
use super::date::DATE_LENGTH;
use super::framing::parse_length;
use super::head::Version;
use super::persistence::ConnectionOptions;
use super::status;

/// The interim response that a client waits for which sent `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What became of a field the application gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It stands in the head.
    Sent,
    /// The server's own stands there instead.
    Replaced,
    /// Left out, and nothing is wrong with that.
    Skipped,
    /// Left out because it is wrong; the reason is for the log.
    Dropped(&'static str),
}

/// What the response's framing, and the end of the connection, depend on in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFacts {
    /// Whether the method was `HEAD`.
    pub head: bool,
    /// The request's version.
    pub version: Version,
    /// Whether both client and server want the connection to go on after the response.
    pub persistent: bool,
}

/// What is known of the body that the application returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySize {
    /// So many bytes.
    Known(u64),
    /// It has to be iterated to find out.
    Unknown,
    /// The application writes to the connection itself, and what it writes is not recoded.
    Stream,
}

/// How the body has to be written so that the client sees where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// Not at all.
    None,
    /// Exactly so many bytes.
    Length(u64),
    /// As chunks, then [`LAST_CHUNK`](super::chunked::LAST_CHUNK).
    Chunked,
    /// As it is: the application applied the transfer coding itself.
    Raw,
    /// As it is; the connection's end is the body's.
    UntilClose,
}

/// What follows from a finished head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How the body has to be written.
    pub framing: BodyFraming,
    /// Whether the connection goes on once the body was written to its end; if not, the head says so.
    pub persists: bool,
}

/// Writes the head of a final response.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    out: &'a mut Vec<u8>,
    status: u16,
    /// The application's `Content-Length`: its value and where its line stands.
    length: Option<(u64, Range<usize>)>,
    coding: bool,
    /// What the application's `Connection` asks for.
    connection: ConnectionOptions,
}

impl<'a> ResponseHead<'a> {
    /// Begins a head: status line and `Date`.
    ///
    /// A status that has not three digits would break the status line. Whoever calls should have refused it;
    /// here it becomes 500.
    pub fn new(out: &'a mut Vec<u8>, status: u16, date: &[u8; DATE_LENGTH]) -> Self {
        let status = if status::is_valid(status) { status } else { 500 };
        write_status_line(out, status);
        write_line(out, b"Date", date);
        Self { out, status, length: None, coding: false, connection: ConnectionOptions::default() }
    }

    /// Writes one field of the application's, its name as given; one line for each line of the value.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"connection") && self.status != 101 {
            self.connection.field(value);
            return Outcome::Replaced;
        }
        if is(b"date") {
            return Outcome::Replaced;
        }
        if is(b"content-length") {
            return self.content_length(name, value);
        }
        if is(b"transfer-encoding") {
            return self.transfer_encoding(name, value);
        }
        write_field(self.out, name, value)
    }

    /// RFC 9110, section 8.6.
    fn content_length(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        // The length of a 304 is that of the response without the condition.
        if status::bodyless(self.status) && self.status != 304 {
            return Outcome::Skipped;
        }
        if self.coding {
            return Outcome::Dropped("content-length beside transfer-encoding");
        }
        if self.length.is_some() {
            return Outcome::Dropped("content-length given twice");
        }
        let Some(length) = parse_length(value) else {
            return Outcome::Dropped("content-length is no number");
        };
        let start = self.out.len();
        write_line(self.out, name, value);
        self.length = Some((length, start..self.out.len()));
        Outcome::Sent
    }

    /// RFC 9112, section 6.1.
    fn transfer_encoding(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        if status::bodyless(self.status) {
            return Outcome::Skipped;
        }
        if self.coding {
            return Outcome::Dropped("transfer-encoding given twice");
        }
        if super::bytes::trim_ows(value).is_empty() || value.iter().any(|&byte| is_control(byte)) {
            return Outcome::Dropped("transfer-encoding is no coding");
        }
        // The body is coded, so its length is not what the client will count.
        if let Some((_, line)) = self.length.take() {
            self.out.drain(line);
        }
        write_line(self.out, name, value);
        self.coding = true;
        Outcome::Sent
    }

    /// Ends the head, and says what follows from it.
    #[must_use]
    pub fn finish(mut self, request: RequestFacts, body: BodySize) -> Ending {
        let framing = self.frame(request, body);
        let persists = request.persistent && self.can_persist(framing, body);
        match (persists, request.version) {
            // A 101 hands the connection over to another protocol, which decides about its end.
            _ if self.status == 101 => {}
            (false, _) => write_line(self.out, b"Connection", b"close"),
            (true, Version::Http10) => write_line(self.out, b"Connection", b"keep-alive"),
            (true, Version::Http11) => {}
        }
        self.out.extend_from_slice(b"\r\n");
        Ending { framing, persists }
    }

    /// Whether there is an end that the client is sure to see, and the server too.
    ///
    /// An application that codes its body itself may have done so wrongly, and one that writes to the connection, or
    /// reads from it, may take part of the next request for its own.
    fn can_persist(&self, framing: BodyFraming, body: BodySize) -> bool {
        let is_told = !matches!(framing, BodyFraming::Raw | BodyFraming::UntilClose);
        let is_final = self.status >= 200;
        is_told && is_final && body != BodySize::Stream && self.connection.persists(Version::Http11)
    }

    fn frame(&mut self, request: RequestFacts, body: BodySize) -> BodyFraming {
        if self.status == 101 && body == BodySize::Stream {
            return BodyFraming::UntilClose;
        }
        let bodyless = request.head || status::bodyless(self.status);
        let given = self.length.as_ref().map(|(length, _)| *length);
        match (given, body) {
            _ if bodyless => {
                self.describe_absent_body(request, body);
                BodyFraming::None
            }
            _ if self.coding => BodyFraming::Raw,
            (Some(length), _) => BodyFraming::Length(length),
            (None, BodySize::Known(length)) => {
                write_length(self.out, length);
                BodyFraming::Length(length)
            }
            (None, BodySize::Unknown) if request.version == Version::Http11 => {
                write_line(self.out, b"Transfer-Encoding", b"chunked");
                BodyFraming::Chunked
            }
            (None, BodySize::Unknown | BodySize::Stream) => BodyFraming::UntilClose,
        }
    }

    /// A response to `HEAD` may tell the length its `GET` would have had (RFC 9110, section 8.6).
    ///
    /// But an empty body most often means that a middleware took it away because of the method, and a
    /// length of 0 would then be a lie. None is needed.
    fn describe_absent_body(&mut self, request: RequestFacts, body: BodySize) {
        if let BodySize::Known(length @ 1..) = body
            && request.head
            && !status::bodyless(self.status)
            && self.length.is_none()
            && !self.coding
        {
            write_length(self.out, length);
        }
    }
}

/// Writes the head of a `103 Early Hints` (RFC 8297).
#[derive(Debug)]
pub struct EarlyHints<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    empty: bool,
}

impl<'a> EarlyHints<'a> {
    /// Begins one. To an HTTP/1.0 client none may be sent.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        write_status_line(out, 103);
        Self { out, start, empty: true }
    }

    /// Writes one hint. Fields that frame a message or manage the connection have no place here.
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Outcome {
        let out_of_place = [b"content-length".as_slice(), b"transfer-encoding", b"connection", b"date"];
        if out_of_place.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Outcome::Skipped;
        }
        let outcome = write_field(self.out, name, value);
        self.empty &= outcome != Outcome::Sent;
        outcome
    }

    /// Ends it. Without any field nothing is left of it, and `false` says so.
    #[must_use]
    pub fn finish(self) -> bool {
        if self.empty {
            self.out.truncate(self.start);
        } else {
            self.out.extend_from_slice(b"\r\n");
        }
        !self.empty
    }
}

/// Writes a whole response that says nothing but its status, and that the connection ends with it.
pub fn error_response(out: &mut Vec<u8>, status: u16, date: &[u8; DATE_LENGTH]) {
    let request = RequestFacts { head: false, version: Version::Http11, persistent: false };
    let head = ResponseHead::new(out, status, date);
    let _ = head.finish(request, BodySize::Known(0));
}

/// Writes a field that neither frames the message nor belongs to the server.
fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Outcome {
    // For the server, or for an older protocol between it and the application.
    let to_server = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack."));
    if to_server || name.eq_ignore_ascii_case(b"status") {
        return Outcome::Skipped;
    }
    if !is_token_text(name) {
        return Outcome::Dropped("its name is no token");
    }
    if value.iter().any(|&byte| byte != b'\n' && is_control(byte)) {
        return Outcome::Dropped("a control byte in its value");
    }
    if !value.contains(&b'\n') {
        write_line(out, name, value);
        return Outcome::Sent;
    }
    // Rack 2 joins the values of a repeated field with LF.
    let mut outcome = Outcome::Skipped;
    for line in value.split(|&byte| byte == b'\n') {
        if !line.is_empty() {
            write_line(out, name, line);
            outcome = Outcome::Sent;
        }
    }
    outcome
}

fn write_status_line(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(status::reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_number(out, length);
    out.extend_from_slice(b"\r\n");
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{number}");
}

fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
