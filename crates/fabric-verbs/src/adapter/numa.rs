//! Distance of an adapter from the processors that this process may use.

use weft_topology::{NumaDomain, ProcessorSet, Sysfs};

/// Returns the distance between NUMA domain `number` and the nearest domain on which this process may run, as the firmware reports it
/// (10: the same domain). Returns `None` if sysfs has no distance.
pub fn distance(number: usize) -> Option<u32> {
    let sysfs = Sysfs::here();
    distance_among(&sysfs.numa_domains(), number, &sysfs.allowed()?)
}

fn distance_among(domains: &[NumaDomain], number: usize, allowed: &ProcessorSet) -> Option<u32> {
    let domain = domains.iter().find(|domain| domain.number == number)?;
    let runs_on = domains.iter().filter(|other| !other.processors.is_disjoint(allowed));
    runs_on.filter_map(|other| domain.distances.get(&other.number)).copied().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_domain_of_ours_counts() {
        // Domain 1 is not online.
        let domains = [(0, 0..4, [10, 21, 31]), (2, 4..8, [21, 10, 41]), (3, 8..9, [31, 41, 10])];
        let domains = domains.map(|(number, processors, row)| NumaDomain {
            number,
            processors: processors.collect(),
            distances: [0, 2, 3].into_iter().zip(row).collect(),
        });
        let far = |number, allowed: &[usize]| {
            distance_among(&domains, number, &allowed.iter().copied().collect())
        };
        assert_eq!(far(0, &[0, 1, 8]), Some(10));
        assert_eq!(far(2, &[1, 2]), Some(21));
        assert_eq!(far(3, &[2, 5]), Some(31));
        assert_eq!(far(2, &[8]), Some(41));
        assert_eq!((far(1, &[0]), far(0, &[77])), (None, None));
    }
}
