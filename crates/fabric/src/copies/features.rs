//! The abilities of a processor, as it reports them.

/// Returns true if this processor has an instruction that moves a cache line to a cache level behind its own (CLDEMOTE).
/// Callers ask seldom, because the query takes long in a virtual machine.
pub(super) fn can_hand_over() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::__cpuid_count;
        const FEATURES: u32 = 7;
        const CLDEMOTE: u32 = 1 << 25;
        __cpuid_count(0, 0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & CLDEMOTE != 0
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    false
}
