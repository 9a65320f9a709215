import type { Caller } from "../../identity/caller"
import type { AiTask } from "../ai-task"
import { analyzePrompt } from "../prompts/analyze-broadcast"
import { merged, readAdvisory } from "./advisory"
import { type AdviceParts, type BroadcastDraft, readFacts } from "./facts"
import { adviseByRules } from "./rules"

/** The rules look at the draft first, and the model may add to their advice. Throws 404 `topic_not_found`. */
export async function analyzeTask(
  parts: AdviceParts,
  caller: Caller,
  { draft }: { draft: BroadcastDraft },
): Promise<AiTask> {
  const advisory = adviseByRules(await readFacts(parts, caller, draft))
  return {
    action: "analyze_broadcast",
    prompt: analyzePrompt(draft, advisory),
    read: async (output) => ({ complete: { advisory: merged(advisory, readAdvisory(output)) } }),
    rules: { advisory },
  }
}
