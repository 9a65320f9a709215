import { reputationText } from "../commands/reputation"
import { percent } from "../lib/cells"
import { scrolling } from "./keys"
import type { Screen } from "./state"

export const reputationScreen: Screen = {
  load: () => [{ do: "load_reputation" }],
  info({ pages: { reputation } }) {
    if (reputation.found === null) return ""
    const { status, bounce_rate, complaint_rate, held } = reputation.found
    const some = held.length > 0 ? `   ${held.length} held: belfry reputation release` : ""
    return `${status}: bounces ${percent(bounce_rate)}, complaints ${percent(complaint_rate)}${some}`
  },
  page: reputationText,
  keys: () => [scrolling],
  actions: [],
}
