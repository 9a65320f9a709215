import { mayBeSignedIn } from "./kept"
import { applyTheme, keptTheme } from "./theme-choice"

applyTheme(keptTheme())
// The link to sign in does not flash before the name of the person is known.
if (mayBeSignedIn()) document.documentElement.dataset.session = "kept"
