"""Facts about every attempt of this portal: three reflectors, one cache, and the questions that neither answers."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field

from portal.clusters.kube import facts
from portal.clusters.kube.cache import Cache, Key, Kind, Suspect
from portal.clusters.kube.connection import Connection
from portal.clusters.kube.facts import Object
from portal.clusters.kube.manifests import INSTANCE_LABEL, KUEUE_API, instance_value
from portal.clusters.kube.pulse import beat
from portal.clusters.kube.reflector import Reflector
from portal.clusters.kube.streams import TROUBLE, Refusal, Session
from portal.clusters.kube.writes import path
from portal.clusters.specs import AttemptFacts, PassingError

# Seconds that a change waits for its neighbours (Job, Workload and pod change together); never longer, so that an
# attempt which never stops changing is told of all the same.
WINDOW = 0.015
# How long an expected Job may be unseen by list and watch before it is asked for; then how often it is asked for again.
UNSEEN, ASK_AGAIN = 5.0, 60.0
# An object that exists without our label is in no watch, so it is looked at from time to time.
LOOK_AGAIN = 15.0
AT_ONCE = 8
# How long everything waits for the Workloads to be listed.
PATIENCE = 30.0

Expected = Mapping[str, tuple[str, int]]


@dataclass(slots=True)
class _Question:
    """Does this object exist? `due`: when to ask, on the loop's clock."""

    suspect: Suspect
    due: float
    # (job id, attempt) where the object was only expected, never seen.
    identity: tuple[str, int] | None = None


@dataclass(slots=True)
class Observer:
    """One pass of observation; make a new one for each. `expected` is read anew at each round, `heard` is called
    whenever the cluster shows life."""

    connection: Connection
    cluster: str
    instance: str
    expected: Callable[[], Expected]
    heard: Callable[[], None]
    _cache: Cache = field(init=False)
    _changed: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _asking: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _questions: dict[Suspect, _Question] = field(init=False, default_factory=dict)
    # "namespace/name" of expected Jobs that list and watch do not show -> when to ask for them.
    _unseen: dict[str, float] = field(init=False, default_factory=dict)
    _listed: set[Kind] = field(init=False, default_factory=set)
    _began: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._cache = Cache(self.cluster)

    async def observe(self) -> AsyncGenerator[AttemptFacts, None]:
        """All attempts first, then each change, for ever. Close it (`contextlib.aclosing`) to end its connections."""
        self._began = asyncio.get_running_loop().time()
        reflectors = self._reflectors()
        workers = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        workers += [
            asyncio.create_task(beat(self.connection, self.heard, reflectors)),
            asyncio.create_task(self._ask()),
            asyncio.create_task(self._compare()),
        ]
        try:
            while True:
                await self._until_changed(workers)
                key = await self._next()
                if (found := self._cache.take(key)) is not None:
                    yield found
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _reflectors(self) -> list[Reflector]:
        ours = f"{INSTANCE_LABEL}={instance_value(self.instance)}"

        def reflector(kind: Kind, where: str, selector: str) -> Reflector:
            return Reflector(kind, where, selector, self.connection, self)

        return [
            reflector("jobs", "/apis/batch/v1/jobs", ours),
            # Kueue copies no label of ours; every Workload of a Job names that Job's uid and has it as its owner.
            reflector("workloads", f"/apis/{KUEUE_API}/workloads", "kueue.x-k8s.io/job-uid"),
            reflector("pods", "/api/v1/pods", ours),
        ]

    # --- Sink ------------------------------------------------------------------------------------------------------

    def page(self, kind: Kind, things: list[Object]) -> None:
        for thing in things:
            self._cache.put(kind, thing)
        self._changed.set()

    def listed(self, kind: Kind, uids: set[str]) -> None:
        for suspect in self._cache.unlisted(kind, uids):
            self._doubt(suspect)
        self._listed.add(kind)
        if kind == "jobs":
            # After a list there is no need to wait: what it does not show is asked for now.
            self._unseen = dict.fromkeys(self._unseen, 0.0)
            self._unseen |= {name: 0.0 for name in self.expected() if not self._cache.knows(_key(name))}
        self._changed.set()

    def changed(self, kind: Kind, deed: str, thing: Object) -> None:
        if deed != "DELETED":
            self._cache.put(kind, thing)
        elif (suspect := self._cache.drop(kind, thing)) is not None:
            self._doubt(suspect)
        self._changed.set()

    # --- telling ---------------------------------------------------------------------------------------------------

    async def _until_changed(self, workers: list[asyncio.Task[None]]) -> None:
        """Until there is something to tell."""
        while not (self._cache.dirty and self._is_complete()):
            self._changed.clear()
            change = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({change, *workers}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()
            for worker in workers:
                if worker.done():
                    worker.result()  # raises what ended it: workers have no end of their own

    def _is_complete(self) -> bool:
        """Whether all three kinds are listed; before that a job would look as if it had no pods or no Workload.

        Workloads that cannot be listed for long (no right, no Kueue) must not hide the pods that run.
        """
        waited = asyncio.get_running_loop().time() - self._began
        return len(self._listed) == 3 or (waited > PATIENCE and {"jobs", "pods"} <= self._listed)

    async def _next(self) -> Key:
        """The attempt that has waited longest, once its window is over."""
        loop = asyncio.get_running_loop()
        dirty = self._cache.dirty
        key, due = next(iter(dirty.items()))
        if due is None:
            # All that became dirty while the consumer was busy waits one window together, not one each.
            due = loop.time() + WINDOW
            dirty.update(dict.fromkeys((each for each, when in dirty.items() if when is None), due))
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        return key

    # --- asking ----------------------------------------------------------------------------------------------------

    def _doubt(self, suspect: Suspect, *, identity: tuple[str, int] | None = None, wait: float = 0.0) -> None:
        due = asyncio.get_running_loop().time() + wait
        self._questions.setdefault(suspect, _Question(suspect, due, identity))
        self._asking.set()

    async def _compare(self) -> None:
        """Ask for every expected Job that is not seen."""
        loop = asyncio.get_running_loop()
        while True:
            if "jobs" in self._listed:
                expected = self.expected()
                missing = {name for name in expected if not self._cache.knows(_key(name))}
                self._unseen = {name: self._unseen.get(name, loop.time() + UNSEEN) for name in missing}
                for name, due in self._unseen.items():
                    if due <= loop.time():
                        self._unseen[name] = loop.time() + ASK_AGAIN
                        self._doubt(Suspect("jobs", *_key(name), ""), identity=expected[name])
            self._changed.set()
            await asyncio.sleep(0.5)

    async def _ask(self) -> None:
        """Answer the questions, a few at a time; what cannot be answered now is asked again."""
        loop = asyncio.get_running_loop()
        while True:
            due = [each for each in self._questions.values() if each.due <= loop.time()][:AT_ONCE]
            if not due:
                self._asking.clear()
                await _wait(self._asking, 1.0 if self._questions else 60.0)
                continue
            try:
                async with Session(self.connection) as session:
                    await asyncio.gather(*(self._resolve(session, question) for question in due))
            except PassingError:
                await asyncio.sleep(1.0)

    async def _resolve(self, session: Session, question: _Question) -> None:
        suspect = question.suspect
        loop = asyncio.get_running_loop()
        where = path("Job" if suspect.kind == "jobs" else "Pod", suspect.namespace, suspect.name)
        try:
            found: Object | None = await session.json(where, whole=10.0)
        except Refusal as error:
            if error.status != 404:
                question.due = loop.time() + 2.0
                return
            found = None
        except TROUBLE:
            question.due = loop.time() + 2.0
            return
        self.heard()
        self._conclude(question, found)

    def _conclude(self, question: _Question, found: Object | None) -> None:
        suspect = question.suspect
        self._questions.pop(suspect, None)
        ours = found is not None and facts.labels(found).get(INSTANCE_LABEL) == instance_value(self.instance)
        if question.identity is not None:
            if found is None:
                self._cache.missing((suspect.namespace, suspect.name), *question.identity)
            elif ours:
                self._cache.put("jobs", found)
        elif found is None or facts.uid(found) != suspect.uid:
            self._cache.vanished(suspect.kind, suspect.uid)
        else:
            self._cache.put(suspect.kind, found)
            if not ours:
                self._doubt(suspect, wait=LOOK_AGAIN)
        self._changed.set()


def _key(name: str) -> Key:
    namespace, _, own = name.partition("/")
    return namespace, own


async def _wait(event: asyncio.Event, longest: float) -> None:
    try:
        async with asyncio.timeout(longest):
            await event.wait()
    except TimeoutError:
        pass
