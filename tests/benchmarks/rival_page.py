"""The words of the page that `rival_models` writes; the only figures here are published or measured ones."""

TOP = """# How far the model is off, beside simpler models

Step times of this model and of two simple rivals against measured training runs, and what other tools reach. Written by
`python -m tests.benchmarks.rival_models TRAINING.csv --further FURTHER.csv --kernels FOLDER --out reports/gallery/accuracy.md` in some
minutes; the measured runs and kernels are public, source by source, but they do not come with this project.

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

CALCULON_TOP = """
## Calculon on the same rows

Figures of Calculon's public code, which ran with its own description of the A100, unchanged but for the bandwidth between the nodes of
each cluster. Nothing in it was fitted to these rows but to the eight of Korthikanti et al., and it has no time for the head of the model.
Beside it stands this model, each run predicted by constants that saw none of its hidden size, those of Korthikanti et al. by constants to
which they gave nothing. The better of two is bold.
"""

BELOW = """
As published, vTrain is 8.4 % off on its own runs on one node and 14.7 % on several; it profiles kernels on the machine that it predicts,
and those figures are over all runs of its authors.

- Calculon: M. Isaev, N. McDonald, L. Dennison, R. Vuduc. Calculon: a methodology and tool for high-level co-design of systems and large
  language models. SC 2023.
- vTrain: J. Bang, Y. Choi, M. Kim, Y. Kim, M. Rhu. vTrain: a simulation framework for evaluating cost-effective and compute-optimal large
  language model training. MICRO 2024.
- Korthikanti et al. Reducing activation recomputation in large transformer models. arXiv 2205.05198, 2022."""

DEVICES = """
## By source and device, with the constants of the registry

All rows of TRAINING.csv. *Set of* names the stack whose own constants price a run, - the device's usual ones. The A100's were fitted to its
rows here and are carried over to other devices, where sets of stacks differ in a few constants. *Fitted* says of which rows the source was
seen by the set that prices them: *all*, *none*, or so many; how far off others may be, the set itself says (`left_out`). Derived
times come from tokens a second. A row that repeats the settings and the time of another counts once.

- Five sixths of the regret on one node come of 32 questions whose best plan has one of two layers that take less time for more work: hidden
  size 2048 on four tensor ranks, 2.8 ms with a microbatch of 2 and 3.1 with 1, and hidden size 1024 on two, 3.2 ms with 4 and 3.6 with 2.
  Those runs look composed of a few measured layers (`crossflow/README.md`). The other 92 questions have a regret of 0.8 % in the mean and
  13.7 % at most.
- What makes tau of the BLOOM runs are days, and eight tensor ranks, which are predicted 7 % too short, two 8 % too long: one plan took
  120.2 to 121.5 s in one week and 114.0 to 114.1 s in the next, and many plans that are ranked differ by less.
"""

CEILINGS = """
### How well any model could rank

Runs of one plan differ, so that a model that knew the time of every plan would not rank all as they were measured: *highest tau* and *its
regret* are what it may expect (above what it would have, as measured times are apart for noise too). *Monotone* is the ranking by the times
nearest to the measured ones by which a larger microbatch never passes in less time (`tests/benchmarks/rival_ceilings.py`).

- BLOOM's six plans that were run again spread by 3.7 %: tau of 0.7 is nearly all that its runs can show, and a regret of 1 % is less than
  they can.
- On one node of vTrain no plan was run twice, and a monotone model could rank all plans, though in 100 of 613 pairs of neighbours a larger
  microbatch passes in less time: nothing bars what is missing there, but no physics is known for it. *Second best* is by how much the next
  measured plan takes longer than the best, in half of the questions: plans there are no near ties, so that a wrong choice costs much.
"""

LEARNERS = """
### Whether what is missing can be learned

Where a term is missing that follows from the settings, a regressor finds it in the errors. Four are given the settings and the predicted
time of runs and correct others (`tests/benchmarks/rival_learners.py`): least squares on squares and products, the twenty nearest runs,
small trees one after the other, and this model with constants of its own for the source. *Rows left out*: every fifth, while others of
the same layer (hidden size, heads, tensor ranks, microbatch) are seen. *Layers left out*: all runs of a fifth of the layers, as for a layer
that nobody measured. Rankings are those with layers left out. Repeated rows count.

- On one node all of them come below 6 % where they have seen the layer, which they then look up; where they have not, three of four stay
  above, constants fitted to that source alone too. So 6 % is about what settings tell of layers that nobody measured. None has a higher tau
  than the model as it is, nor a regret below 3 %.
- None has a higher tau for BLOOM's plans either, though three take a fifth or more off the errors of its runs.
"""

DOUBLED = """
If a setting were priced wrongly, errors would move to one side where it alone is doubled. *Rises* and *falls* count the layers whose error
moves by more than three points in the mean over its runs: of larger microbatches and of more tensor ranks about as many rise as fall, so
that no term for either mends them; stages, data ranks and batches are right. Of hidden sizes alone errors go one way, which the next table
is about.
"""

READINGS = """
Constants fitted anew under three readings, with errors (and their mean) of each source. Fitted to one node alone, the model is 5 % off
there, with 0.95 of the matrix peak, and 13 to 26 % too short for all others, most of FSDP's on eight A100 as well. Single large products on
A100 (the kernels below, of 1e11 FLOP and more) reach 0.83 of the peak in the median and 0.90 at the best, so that these layers of hidden
size 2,048 run as no other training that was measured. Read as if nothing were computed again, one node asks for what all others do; but
runs of the same authors on several nodes then come out too long, and their configurations say that all is. So neither is taken
(`tests/benchmarks/rival_readings.py`).
"""

ANEW = """
The first of these fits on runs that no constants saw: about as many sources come nearer as come farther off, runs of Megatron-Core on H100
and those of Korthikanti et al. among the latter, and the mean hardly moves. So the registry's constants stay.
"""

FURTHER = """
## Further runs

All rows of FURTHER.csv. Those marked under *fitted* were seen by the set of their stack on that device, the others by none.
"""

RANGES = """
## Likely ranges

A range goes from the least to the greatest step time by the central, the optimistic and the pessimistic constants, of which nine runs in
ten are meant to be inside, one in twenty faster and one slower; where a stack has fewer than twenty runs of such plans (ranks, bits) it is
no narrower than the others of these were off by, never the run itself. The sets were fitted on A100. Many runs on one
side are a term that is missing. Devices without such sets have no line. *Plans* are runs that differ in more than replicas and batch:
others err alike, so that of few plans the share says little. *By chance* is how often so many plans are as far from nine in ten by luck, on
the same side, if each is inside nine times in ten: a small figure below 90 % is a range too narrow, above it one too wide.
"""

LEFT_OUT = """
Nominal are 90 %. What is seen is in sample: constants, and how far optimistic ones and pessimistic ones are apart, were fitted to the very
runs. Beside it stand ranges of constants that were fitted without the source, those of the A100 with the optimistic and the pessimistic
ones too, those of sets of stacks in the few constants that a set has; all by the constants alone.
"""

KERNELS = """
## Kernels alone

Single kernels that a public repository measured (ai-dynamo/aiconfigurator, 095f58a): priced as a step prices the same operator, without
the gap between two kernels, and by constants fitted to kernels of their kind. Shapes left out share columns and depth, heads, or ranks
and bytes, a fifth of them at a time. Steps are priced by the first, since kernels alone say nothing of what lies between two of them.
"""
