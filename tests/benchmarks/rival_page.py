"""The words of the page that `rival_models` writes; the only figures here are those that others published or that their code gave."""

TOP = """# How far the model is off, beside simpler models

Step times of this model and of two simple rivals against measured training runs, and what other tools reach. Written by
`python -m tests.benchmarks.rival_models TRAINING.csv --further FURTHER.csv --out reports/gallery/accuracy.md` in a minute; the
measured runs are public, source by source, but they do not come with this project.

## Mean errors, in sample and out of sample

The rows are the training steps on A100 of TRAINING.csv. Every figure is the mean of |predicted / measured - 1| (MAPE); the best of three is
bold. Three models are fitted to the same rows by the same robust least squares on log(predicted / measured), within bounds, with one
set of constants for all sources. The weight of a run falls with the 0.6th power of the number of runs of its source.

- *one efficiency*: the FLOPs that the hardware executes, recomputed ones too, over devices, peak and one constant, with the bubble
  (p - 1) / (m v) of the pipeline;
- *twelve constants*: a closed form of efficiencies of products and of memory, launch time and floor of a layer, bandwidth and latency of
  tensor parallelism, bandwidth of pipeline and of data parallelism and the overlap of the latter, passes over the logits, and times of
  a microbatch and of a step (`tests/benchmarks/rival_formulas.py`);
- *crossflow*: the model of this project with the constants that `crossopt calibrate` fits.

*Hidden size left out*: each run is predicted by constants fitted without any run of its hidden size, in whatever source. *Source left
out*: without any run of its source; for vTrain that leaves no small runs on one node, so nothing tells launch times and floors.
"""

RANKING = """
## Ranking of plans

A question is a model, batch and machine of which at least three plans were measured. tau is Kendall's tau-a, 1 for the measured order.
Regret is the measured time of the plan that a model ranks first over the best measured time, less 1; of plans that tie, the slowest
counts. The hidden size of the question is left out of the fit, but for the last two columns.
"""

BELOW = """
## Figures of other tools

The errors of each tool on the rows that the table names.

| tool | rows | mean error | largest | tau | mean regret | largest regret | mark |
| --- | --- | --- | --- | --- | --- | --- | --- |
| Calculon | 8 runs of Korthikanti et al. 2022, table 5, to which it was tuned | 3.7 % | 8.9 % | - | - | - | measured with the public code |
| Calculon | vTrain, one node, the 1,152 above | 38.9 % | 86.6 % | 0.51 | 11.5 % | 92.6 % | measured with the public code |
| Calculon | vTrain, several nodes, the 41 above | 35.6 % | 192 % | 0.70 | 2.2 % | 4.5 % | measured with the public code |
| Calculon | BLOOM pre-runs, 94 with repeats and rejects | 34.4 % | 169 % | 0.45 | 3.8 % | 21.8 % | measured with the public code |
| vTrain | its own runs on one node | 8.4 % | - | - | - | - | as published |
| vTrain | its own runs on several nodes | 14.7 % | - | - | - | - | as published |

Calculon ran with its own description of the A100, unchanged but for the bandwidth between the nodes of each cluster. Nothing in it was
fitted to its last three lines, which are out of sample, and it has no time for the head of the model. Its 124, 2 and 11 questions are as
many as above. vTrain profiles kernels on the machine that it predicts; its figures are over all runs of its authors.

- Calculon: M. Isaev, N. McDonald, L. Dennison, R. Vuduc. Calculon: a methodology and tool for high-level co-design of systems and large
  language models. SC 2023.
- vTrain: J. Bang, Y. Choi, M. Kim, Y. Kim, M. Rhu. vTrain: a simulation framework for evaluating cost-effective and compute-optimal large
  language model training. MICRO 2024.
- Korthikanti et al. Reducing activation recomputation in large transformer models. arXiv 2205.05198, 2022."""

DEVICES = """
## By source and device, with the constants of the registry

All rows of TRAINING.csv. The constants were fitted to those of the A100; other devices carry them over. Derived times come from tokens a
second. A row that repeats the settings and the time of another counts once.
"""

FURTHER = """
## Further runs

All rows of FURTHER.csv; nothing was fitted to any of them.
"""
