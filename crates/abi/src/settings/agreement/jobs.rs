//! Settings that must be equal in jobs that connect. The processes of both jobs compare them when they meet.
//!
//! ```text
//!   each process   sends a hash of its values in its introduction
//!   all            send their values, if any two hashes differ
//!   all            return an error with settings, jobs and values, and do not connect
//! ```

use super::{Values, decode, differences, encode, host, own, own_host, with_host};
use crate::settings::{SettingAgreement, SettingSpec};
use weft_bootstrap::hash;

/// Values of this process that a connected job must have, too.
pub struct JobSettings {
    /// Encoded values that are not the default.
    text: String,
}

impl JobSettings {
    /// Returns the values that are now in force.
    ///
    /// # Errors
    /// Returns an error if a value is invalid.
    pub fn own() -> Result<JobSettings, String> {
        JobSettings::of(|setting| setting.text())
    }

    fn of(text: impl Fn(&SettingSpec) -> String) -> Result<JobSettings, String> {
        let values = own(|agreement| agreement == SettingAgreement::All, text)?;
        Ok(JobSettings { text: encode(&values) })
    }

    /// Returns a hash, which is equal for equal values.
    pub fn hash(&self) -> u64 {
        hash(&self.text)
    }

    /// Encodes the values, and the host of this process.
    pub fn encode(&self) -> Vec<u8> {
        with_host(&own_host(), &self.text).into_bytes()
    }
}

/// Describes the differences between the settings of several jobs. `jobs` has the job of each process, and `said` has the encoded
/// values.
pub fn refusal(own_job: u64, jobs: &[u64], said: &[Vec<u8>]) -> String {
    let all: Vec<Values> = said.iter().map(|said| decode(&String::from_utf8_lossy(said))).collect();
    let mut others: Vec<u64> = jobs.iter().copied().filter(|&job| job != own_job).collect();
    others.sort_unstable();
    others.dedup();
    let name = |job: u64| match others.len() {
        _ if job == own_job => "in this job".to_owned(),
        1 => "in the other job".to_owned(),
        _ => format!("in job {job:016x}"),
    };
    // All processes of a job have the same values.
    let in_words = |places: &[usize]| {
        let mut words: Vec<String> = Vec::new();
        for &place in places {
            let job = name(jobs[place]);
            if !words.iter().any(|known| known.starts_with(&job)) {
                words.push(format!("{job} (host {})", host(&all[place])));
            }
        }
        words.join(" and ")
    };
    format!(
        "jobs that connect must have the same settings, but {}. Set them alike (mpiexec -genv NAME VALUE, or the info key env of \
         MPI_Comm_spawn)",
        differences(&all.iter().collect::<Vec<_>>(), in_words)
    )
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::super::tests::another;
    use super::*;
    use crate::settings::SETTINGS;

    /// Returns the settings of a job in which `name` has `value`.
    fn job(name: &str, value: &str) -> JobSettings {
        let text = |s: &SettingSpec| if s.name == name { value } else { s.default }.to_owned();
        JobSettings::of(text).unwrap()
    }

    #[test]
    fn each_setting_that_jobs_must_share_is_refused_with_both_values() {
        let (mut refused, mut allowed) = (0, 0);
        for setting in SETTINGS {
            let value = another(setting);
            let (one, two) = (job(setting.name, &value), job("", ""));
            assert_eq!(job(setting.name, &value).hash(), one.hash(), "{}", setting.name);
            match setting.about.2 {
                SettingAgreement::Each => assert_eq!(one.hash(), two.hash(), "{}", setting.name),
                SettingAgreement::Job(why) => {
                    assert_eq!(one.hash(), two.hash(), "{}", setting.name);
                    assert!(!why.is_empty(), "{}", setting.name);
                    allowed += 1;
                }
                SettingAgreement::All => {
                    assert_ne!(one.hash(), two.hash(), "{}", setting.name);
                    refused += 1;
                    let host = own_host();
                    let said = [&one, &one, &two].map(JobSettings::encode);
                    let default =
                        if setting.default.is_empty() { "not set" } else { setting.default };
                    let value = plain(setting, &value).unwrap();
                    for (own, whose) in
                        [(7, ["this job", "the other job"]), (8, ["the other job", "this job"])]
                    {
                        let text = refusal(own, &[7, 7, 8], &said);
                        let words = format!(
                            "but {} is {value} in {} (host {host}), {default} in {} (host {host}). Set",
                            setting.name, whose[0], whose[1]
                        );
                        assert!(text.contains(&words), "{text}");
                    }
                }
            }
        }
        assert!(refused > 30 && allowed > 2, "{refused} and {allowed}");
    }

    #[test]
    fn several_jobs_are_told_apart_by_their_numbers() {
        let said = [job("", ""), job("WEFT_CMA", "0"), job("WEFT_CMA", "0")];
        let text = refusal(1, &[1, 2, 3], &said.map(|one| one.encode()));
        let host = own_host();
        let words = format!(
            "WEFT_CMA is 1 in this job (host {host}), 0 in job 0000000000000002 (host {host}) and in job 0000000000000003 (host {host}). Set"
        );
        assert!(text.contains(&words), "{text}");
    }
}
