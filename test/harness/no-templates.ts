import type { Workers } from "../../src/core/workers"
import type { Reader } from "../../src/store/store"
import type { TemplateRendering } from "../../src/templates/rendering"
import { TemplateRenderer } from "../../src/templates/template-renderer"

/** For parts that are wired by hand and render nothing: there are no threads. */
export const noTemplates = (read: Reader): TemplateRendering => ({
  read,
  renderer: new TemplateRenderer({
    run: () => Promise.reject(new Error("there are no threads here")),
  } as unknown as Workers),
})
