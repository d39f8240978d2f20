//! Level of vector instructions that the processor has beyond the base of its architecture.

/// Only the base instructions.
pub(crate) const BASE: u8 = 0;
/// x86-64 with AVX2: registers of 32 bytes.
pub(crate) const AVX2: u8 = 1;
/// x86-64 with AVX-512 F, BW, DQ and VL: registers of 64 bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX512: u8 = 2;

/// Returns this processor's level. The standard library detects it once and caches it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn level() -> u8 {
    use std::arch::is_x86_feature_detected as has;
    if has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("avx512f") {
        AVX512
    } else if has!("avx2") {
        AVX2
    } else {
        BASE
    }
}
