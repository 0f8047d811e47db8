//! The names of methods that are called in each request: looked up once, not by their letters each time.

use magnus::value::LazyId;

macro_rules! names {
    ($($name:ident = $text:literal),* $(,)?) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub static $name: LazyId = LazyId::new($text);
        )*
    };
}

names! {
    CALL = "call",
    CLOSE = "close",
    EACH = "each",
    TO_ARY = "to_ary",
    TO_I = "to_i",
    TO_PATH = "to_path",
}
