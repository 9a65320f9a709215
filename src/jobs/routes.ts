import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import type { Store } from "../store/store"
import * as longJobs from "./long-jobs"
import { Job } from "./schemas"

const ONE = "/v1/jobs/{job_id}"

const by = <const Path extends string>(method: Method, path: Path) => ({
  ...projectRow(method, path, "-"),
  response: Job,
})

export const longJobRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...by("GET", ONE),
    summary: "Show the progress and the result of a long job",
    description:
      "A request that begins long work answers 201 with a job. Ask again until `status` is `completed`, `failed` or `cancelled`. Operators also read the jobs of the instance, such as a backup.",
    handle: async ({ project_id, params, caller }) => ({
      data: await longJobs.find(store.read, project_id, params.job_id, caller.operator),
    }),
  }),
  route({
    ...by("POST", `${ONE}/cancel`),
    summary: "Cancel a long job",
    description: "Finished work stays. A job that has ended answers 409.",
    errors: ["conflict"],
    handle: async ({ project_id, params, caller }) => ({
      data: await store.tx((tx) => longJobs.cancel(tx, project_id, params.job_id, caller.operator)),
    }),
  }),
]
