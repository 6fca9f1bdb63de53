//! The floating-point settings of a thread, which another library may have changed under us.
//!
//! `torch.set_flush_denormal(True)` makes the calling thread, and every thread it starts, take numbers below 2⁻¹⁰²²
//! (2⁻¹²⁶ for `f32`) for zero. Logits that differ by as little would be ties then, and the bits of a result depend on
//! who set what before. Rust code may assume the default settings, so they are restored where Python's threads enter
//! it.
#![allow(unsafe_code, reason = "the control word of a CPU has no safe name")]

/// Does `work` under the default settings and leaves the thread as it was.
pub fn by_default<R>(work: impl FnOnce() -> R) -> R {
    let _before = Restored::set();
    work()
}

/// Gives a thread of our own the default settings for good.
pub fn set_default() {
    control::set(control::DEFAULT);
}

/// What a thread had, until this is dropped.
struct Restored(control::Word);

impl Restored {
    fn set() -> Self {
        let before = control::get();
        control::set(control::DEFAULT);
        Self(before)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        control::set(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    pub type Word = u32;
    /// Exceptions masked, rounding to nearest, nothing flushed to zero.
    pub const DEFAULT: Word = 0x1f80;

    pub fn get() -> Word {
        let mut word = 0;
        // SAFETY: stores four bytes at an address that is valid for them, and touches nothing else.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub fn set(word: Word) {
        // SAFETY: loads four bytes that `get` stored or `DEFAULT` has, none of them a reserved bit.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    pub type Word = u64;
    /// Rounding to nearest, nothing flushed to zero.
    pub const DEFAULT: Word = 0;

    pub fn get() -> Word {
        let word;
        // SAFETY: reads the thread's own control register.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    pub fn set(word: Word) {
        // SAFETY: writes what `get` read, or zero, which is what every thread starts with.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub type Word = ();
    pub const DEFAULT: Word = ();

    pub fn get() -> Word {}

    pub fn set((): Word) {}
}
