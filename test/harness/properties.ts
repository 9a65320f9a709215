/**
 * fast-check for every test: it invents the same cases in each run, so a run tells of the change that is
 * tested. BELFRY_TEST_SEED=N invents other ones.
 */
import fc from "fast-check"

fc.configureGlobal({ seed: Number(process.env.BELFRY_TEST_SEED ?? 1) })

export default fc
