"""What the figures mean that all pages show."""

FIGURES = {
    "Ideal": "What the formula of the family gives for filters without limits of size. That of decision feedback "
    "assumes decisions without errors, which at strong privacy is far from true.",
    "Predicted": "What the realised filters, the small ones that run, give on a stream of the model: computed from "
    "their transfer functions, not sampled. There is none where a receiver makes decisions: only simulation tells its "
    "error.",
    "Lower bound": "No linear mechanism that is as private, and whose estimates come no later, can err less on this "
    "stream. That of zero forcing is for mechanisms that do not distort; what decides, such as decision feedback, "
    "is not linear and may err less.",
}
