import type { Reader } from "../store/store"
import type { TemplateUse } from "./template-record"

/** Finds what uses a template. The features that use templates are wired in as such a function. */
export type FindUses = (db: Reader, project_id: string, template_id: string) => Promise<TemplateUse>

/** Where no feature of the server uses templates but sends, which name them each time. */
export const noUses: FindUses = async () => ({ workflows: [], broadcasts: [] })
