//! probe
use crate::*;
use conformax::*;
/// probe
pub fn probe(path: &str, labels: &str, nsplits: usize) {
    let b = std::fs::read(path).unwrap();
    let n = npy::parse(&b).unwrap();
    let (npy::Array::F32(v), _) = npy::logits(&n).unwrap() else { panic!() };
    let lb = std::fs::read(labels).unwrap();
    let labels = npy::labels(&npy::parse(&lb).unwrap()).unwrap();
    let logits = Logits::new(&v, n.shape[1]).unwrap();
    let alphas: Vec<Alpha> = (1..=10).map(|i| format!("{}", i as f64 / 100.0).parse().unwrap()).collect();
    let t = std::time::Instant::now();
    let splits: Vec<splits::Split> = (0..nsplits).map(|i| splits::Split::new(labels.len(), 0.4, 0.4, i as u64).unwrap()).collect();
    eprintln!("splits {:?}", t.elapsed());
    let e = |g: f64| ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(g).unwrap() });
    let fixed = |n: &str, s| procedure::Procedure { name: n.into(), choice: procedure::Choice::Fixed(s) };
    let procs = vec![
        fixed("InvProb", ScoreSpec::InvProb(InvProbScore)),
        procedure::Procedure { name: "RAPS".into(), choice: procedure::Choice::Tuned(raps_grid(n.shape[1], Draw::Seeded(0)).into_iter().map(ScoreSpec::Raps).collect()) },
        fixed("log-margin", e(1.0)), fixed("1.5-entmax", e(1.5)), fixed("sparsemax", e(2.0)),
        procedure::Procedure { name: "opt-entmax".into(), choice: procedure::Choice::Tuned(entmax_grid().into_iter().map(ScoreSpec::Entmax).collect()) },
    ];
    let sweep: Vec<Gamma> = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0].map(|g| Gamma::new(g).unwrap()).to_vec();
    let strata = Strata::paper();
    let plan = evaluation::Plan { procedures: &procs, alphas: &alphas, splits: &splits, sweep_splits: 5, sweep: &sweep, strata: &strata };
    let out = evaluation::evaluate_benchmark(logits, &labels, &plan, &|s, d| eprintln!("{s:?} {d:?}")).unwrap();
    eprintln!("total {:?}", t.elapsed());
    for (p, o) in procs.iter().zip(&out.procedures) {
        let m = |l: usize| { let k = o.outcomes.len() as f64; (o.outcomes.iter().map(|x| x[l].metrics.average_size).sum::<f64>() / k, o.outcomes.iter().map(|x| x[l].metrics.coverage).sum::<f64>() / k) };
        eprintln!("{:12} {:?} {:?} {:?}", p.name, m(0), m(4), m(9));
    }
}
