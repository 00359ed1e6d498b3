"""What a solver may ask of a problem: five kinds, each with a contract in `problems/`.

A solver says which kind it needs (`needs`), a problem which kinds it can be (`serves`).
"""

PLANES = "planes"  # problems.base.RiskProblem: cutting planes (OCAS, CPA)
SINGLE_ROWS = "single rows"  # problems.base.RowProblem: rows one at a time (SGD, Pegasos)
COORDINATES = "coordinates"  # problems.base.CoordinateProblem: the dual variables of rows (coordinate descent)
SMOOTH = "smooth"  # problems.base.SmoothProblem: a smooth linear problem of few features (Newton)
BOX = "box"  # problems.box_qp.BoxQP: the dual of a kernel machine (SMO, blocks, active set, interior points, OCAS)

WHAT_IT_DOES = {
    PLANES: "adds cutting planes to a linear problem",
    SINGLE_ROWS: "visits the rows of a linear problem one at a time",
    COORDINATES: "improves the dual variables of a linear problem one at a time",
    SMOOTH: "minimises squared losses of a linear model",
    BOX: "solves the dual problem of a kernel machine",
}
SUCH_AS = {
    PLANES: "OCAS or CPA",
    SINGLE_ROWS: "SGD or Pegasos",
    COORDINATES: "CoordinateDescent",
    SMOOTH: "Newton",
    BOX: "BlockSMO, SMO, ActiveSet, IPM or KernelOCAS",
}
