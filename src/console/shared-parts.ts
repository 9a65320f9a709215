/**
 * Parts that most pages use, as part of the first script: a chunk of their own for each would cost a round
 * trip, because browsers ask for six files at a time.
 */
import "./parts/dialog"
import "./parts/table"
import "./parts/tabs"
import "./parts/virtual-list"
import "./mail/compose-dialog"
