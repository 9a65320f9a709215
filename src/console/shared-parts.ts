/**
 * Parts that most pages use, as part of the first script: a chunk of their own for each would cost a round
 * trip, because browsers ask for six files at a time.
 */
import "./copy-text"
import "./curl"
import "./parts/badge"
import "./parts/code-block"
import "./parts/commands"
import "./parts/dialog"
import "./parts/empty"
import "./parts/field"
import "./parts/menu"
import "./parts/notice"
import "./parts/table"
import "./parts/tabs"
import "./parts/virtual-list"
import "./server-mode"
import "./use-media"
import "./use-poll"
import "./use-title"
import "./mail/compose-dialog"
