// pg-boss at its best settings: four workers of a thousand jobs each, fetching again at once while batches come back full.
const { PgBoss } = require("pg-boss");
const { counting } = require("./counting.cjs");

const [command, connectionString, size] = process.argv.slice(2);
const CHUNK = 10000;

async function work(boss) {
  const ran = counting();
  const options = { batchSize: 1000, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  await boss.work("noop", options, async (jobs) => jobs.forEach(() => ran()));
  process.on("SIGTERM", () => boss.stop({ graceful: false }).then(() => process.exit(0)));
}

async function main() {
  const boss = new PgBoss({ connectionString, max: 10 });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  if (command === "work") return work(boss);
  await boss.createQueue("noop");
  const jobs = Number(size);
  const began = process.hrtime.bigint();
  if (command === "single") {
    for (let n = 0; n < jobs; n += 1) await boss.send("noop", { n });
  } else if (command !== "schema") {
    for (let start = 0; start < jobs; start += CHUNK) {
      const batch = [];
      for (let n = start; n < Math.min(start + CHUNK, jobs); n += 1) {
        const key = command === "bulk" ? { singletonKey: `key-${n}`, singletonSeconds: 86400 } : {};
        batch.push({ data: { n }, ...key });
      }
      const added = await boss.insert("noop", batch, { returnId: command === "bulk" });
      if (command === "bulk" && added.length !== batch.length) throw new Error(`${added.length} rows`);
    }
  }
  console.log("S", Number(process.hrtime.bigint() - began) / 1e9);
  await boss.stop({ graceful: false });
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
