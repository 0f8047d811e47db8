//! What `ps` shows of this process.

use std::fmt::{self, Write};
use std::fs;
use std::sync::OnceLock;

/// What all titles of a server begin with.
const PREFIX: &[u8] = b"pitchfork-rs ";

/// Memory that the kernel shows as the command line: the arguments this program was started with, and behind them its
/// first environment.
#[derive(Clone, Copy, Debug)]
struct Area {
    start: usize,
    len: usize,
}

/// The same in all processes of a server: they are forks.
static AREA: OnceLock<Option<Area>> = OnceLock::new();

/// Sets the title, by writing it where the kernel looks for it. That costs no system call and no object, so it can be
/// done twice a request. `false` where this is not possible.
///
/// Ruby's own `Process.setproctitle` must have been called before: it writes into the same memory, after it has moved
/// the environment away.
pub fn set(title: fmt::Arguments<'_>) -> bool {
    let Some(area) = *AREA.get_or_init(Area::find) else { return false };
    let mut cursor = Cursor { area, at: 0 };
    // It fails where the area ends, which cuts the title.
    let _ = cursor.write_fmt(title);
    cursor.clear_rest();
    true
}

impl Area {
    /// See proc(5): the fields of `/proc/PID/stat` from the third on follow the program's name in brackets.
    fn find() -> Option<Self> {
        const FIRST: usize = 3;
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - FIRST)?.parse::<usize>().ok();
        let (arg_start, arg_end, env_start, env_end) = (field(48)?, field(49)?, field(50)?, field(51)?);
        let is_whole = arg_start != 0 && arg_start < arg_end && arg_end == env_start && env_start < env_end;
        let area = Self { start: arg_start, len: env_end - arg_start };
        (is_whole && !area.holds_environment() && Self::shows_a_title()).then_some(area)
    }

    /// Whether Ruby has written a title of this server there. It has not where this program runs inside another, such
    /// as an emulator or a debugger: the kernel then shows the arguments of that one.
    fn shows_a_title() -> bool {
        fs::read("/proc/self/cmdline").is_ok_and(|shown| shown.starts_with(PREFIX))
    }

    /// Whether some variable of the environment still lies there.
    fn holds_environment(self) -> bool {
        // SAFETY: the C library defines it under this name and with this type (environ(7)).
        unsafe extern "C" {
            static environ: *const *const libc::c_char;
        }
        // SAFETY: `environ` is null or points to a list of pointers that ends with null, and nobody changes it while the
        // GVL is held, as it is wherever titles are set.
        unsafe {
            let mut variable = environ;
            while !variable.is_null() && !(*variable).is_null() {
                if (self.start..self.start + self.len).contains(&((*variable) as usize)) {
                    return true;
                }
                variable = variable.add(1);
            }
        }
        false
    }
}

struct Cursor {
    area: Area,
    at: usize,
}

impl Cursor {
    fn clear_rest(&mut self) {
        let Area { start, len } = self.area;
        // SAFETY: as below; `at` does not pass the end of the area.
        unsafe { std::ptr::write_bytes((start + self.at) as *mut u8, 0, len - self.at) };
    }
}

impl Write for Cursor {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Area { start, len } = self.area;
        // The last byte stays NUL, or the kernel would look for the end of the title behind the area.
        let fits = text.len().min(len - 1 - self.at);
        // SAFETY: the kernel has put this area on this program's stack, above all frames, where it stays for ever, and
        // lets it be written. Ruby has copied everything from there that it needs, and writes titles there itself;
        // nothing else refers to it (`holds_environment`), and the GVL keeps other threads of ours away.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), (start + self.at) as *mut u8, fits) };
        self.at += fits;
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
