//! Finds the end of a request head as it arrives, and refuses early what can no longer become one.
//!
//! httparse forgives bare LF, and starts anew at each call. This scanner looks at each byte once however
//! the head was cut into packets, and what it decides depends on the bytes alone, not on the cuts:
//! it goes through them in order and stops at the first that is wrong.

use super::bytes::{find, is_control, is_token};
use super::limits::Limits;
use super::reject::Reject;
use super::span::Span;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    AfterEmptyLine,
    Method,
    Target,
    Version,
    LineStart,
    Line,
    End,
}

/// How far a head has been looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Scanner {
    state: State,
    /// The first byte that was not looked at yet.
    at: usize,
    /// Where the current part of the request line began.
    mark: usize,
    pub(super) method: Span,
    pub(super) target: Span,
    failed: Option<Reject>,
    /// How many field lines were begun.
    pub(super) fields: usize,
}

/// Whether a step needs a byte that is not there yet.
type Step = Result<bool, Reject>;
const GO_ON: Step = Ok(true);
const WAIT: Step = Ok(false);

impl Scanner {
    /// The length of the head, once its end is in the buffer.
    pub(super) fn scan(&mut self, buf: &[u8], limits: &Limits) -> Result<Option<usize>, Reject> {
        // What lies beyond the limit is not looked at, so that the verdict is the same whether
        // it has already arrived or not.
        let window = &buf[..buf.len().min(limits.max_header_size)];
        if let Some(reject) = self.failed {
            return Err(reject);
        }
        while self.at < window.len() && self.state != State::End {
            match self.step(window, limits) {
                Ok(true) => {}
                Ok(false) => break,
                Err(reject) => {
                    self.failed = Some(reject);
                    return Err(reject);
                }
            }
        }
        if self.state == State::End {
            Ok(Some(self.at))
        } else if buf.len() >= limits.max_header_size {
            Err(Reject::HeadTooLong)
        } else {
            Ok(None)
        }
    }

    fn step(&mut self, window: &[u8], limits: &Limits) -> Step {
        match self.state {
            State::Start => self.start(window),
            State::AfterEmptyLine => match window[self.at] {
                b'\r' => Err(Reject::LeadingEmptyLines),
                _ => self.start(window),
            },
            State::Method => self.method(window, limits),
            State::Target => self.target(window, limits),
            State::Version => self.version(window),
            State::LineStart => self.line_start(window, limits),
            State::Line => self.line(window),
            State::End => WAIT,
        }
    }

    /// One empty line is skipped, as RFC 9112, section 2.2, asks: old clients send one after a body.
    fn start(&mut self, window: &[u8]) -> Step {
        match window[self.at] {
            b'\n' => Err(Reject::BareLf),
            b'\r' => self.line_end(window, State::AfterEmptyLine),
            _ => {
                self.mark = self.at;
                self.state = State::Method;
                GO_ON
            }
        }
    }

    fn method(&mut self, window: &[u8], limits: &Limits) -> Step {
        let end = self.seek(window, |byte| !is_token(byte));
        if end - self.mark > limits.max_method {
            return Err(Reject::MethodTooLong);
        }
        match window.get(end) {
            None => WAIT,
            Some(b' ') if end > self.mark => {
                self.method = self.part(end, State::Target);
                GO_ON
            }
            Some(b'\n') => Err(Reject::BareLf),
            Some(_) => Err(Reject::Method),
        }
    }

    fn target(&mut self, window: &[u8], limits: &Limits) -> Step {
        let end = self.seek(window, |byte| byte <= b' ' || byte == 0x7f);
        if end - self.mark > limits.max_target {
            return Err(Reject::TargetTooLong);
        }
        match window.get(end) {
            None => WAIT,
            Some(b' ') if end == self.mark => Err(Reject::Target),
            Some(b' ') => {
                self.target = self.part(end, State::Version);
                GO_ON
            }
            // HTTP/0.9, whose answer would have no head.
            Some(b'\r') => Err(Reject::VersionMissing),
            Some(b'\n') => Err(Reject::BareLf),
            Some(_) => Err(Reject::TargetByte),
        }
    }

    /// `"HTTP/" DIGIT "." DIGIT CRLF`; RFC 9112, section 2.3.
    fn version(&mut self, window: &[u8]) -> Step {
        const PATTERN: &[u8; 8] = b"HTTP/0.0";
        while let Some(&byte) = window.get(self.at) {
            let Some(&expected) = PATTERN.get(self.at - self.mark) else {
                return self.version_end(window);
            };
            let fits = match expected {
                b'0' => byte.is_ascii_digit(),
                _ => byte == expected,
            };
            match byte {
                _ if fits => self.at += 1,
                b'\n' => return Err(Reject::BareLf),
                b'\r' if self.at == self.mark => return Err(Reject::VersionMissing),
                _ => return Err(Reject::VersionMalformed),
            }
        }
        WAIT
    }

    fn version_end(&mut self, window: &[u8]) -> Step {
        match window[self.at] {
            b'\n' => Err(Reject::BareLf),
            // Anything but 1.x closes the matter: the HTTP/2 preface too is a request line like this.
            b'\r' if !matches!(&window[self.mark..self.at], b"HTTP/1.0" | b"HTTP/1.1") => {
                Err(Reject::VersionUnsupported)
            }
            b'\r' => self.line_end(window, State::LineStart),
            _ => Err(Reject::VersionMalformed),
        }
    }

    fn line_start(&mut self, window: &[u8], limits: &Limits) -> Step {
        match window[self.at] {
            b'\r' => self.line_end(window, State::End),
            b'\n' => Err(Reject::BareLf),
            // A continuation of the line above (RFC 9112, section 5.2), which parsers disagree about.
            b' ' | b'\t' => Err(Reject::LineFolding),
            _ if self.fields == limits.max_fields => Err(Reject::TooManyFields),
            _ => {
                self.fields += 1;
                self.state = State::Line;
                GO_ON
            }
        }
    }

    fn line(&mut self, window: &[u8]) -> Step {
        let end = self.seek(window, is_control);
        match window.get(end) {
            None => WAIT,
            Some(b'\r') => self.line_end(window, State::LineStart),
            Some(b'\n') => Err(Reject::BareLf),
            Some(_) => Err(Reject::FieldValue),
        }
    }

    /// At a CR: it must be followed by LF.
    fn line_end(&mut self, window: &[u8], next: State) -> Step {
        match window.get(self.at + 1) {
            None => WAIT,
            Some(b'\n') => {
                self.at += 2;
                self.state = next;
                GO_ON
            }
            Some(_) => Err(Reject::BareCr),
        }
    }

    /// Goes to the first wanted byte, or to the end of what is there.
    fn seek(&mut self, window: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
        let offset = find(&window[self.at..], wanted);
        self.at = offset.map_or(window.len(), |offset| self.at + offset);
        self.at
    }

    /// Ends a part of the request line at the space behind it.
    fn part(&mut self, end: usize, next: State) -> Span {
        let span = Span::new(self.mark, end);
        self.at = end + 1;
        self.mark = self.at;
        self.state = next;
        span
    }
}
