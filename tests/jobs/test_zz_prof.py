import cProfile, pstats, time, pytest
from portal.jobs.services import submit, sweep
from tests.jobs.conftest import *
@pytest.mark.django_db(transaction=True)
def test_prof(cluster, ask):
    t=time.perf_counter()
    for _ in range(300): submit(ask())
    print("submit each ms", (time.perf_counter()-t)/300*1000)
    p=cProfile.Profile()
    t=time.perf_counter(); c=time.process_time()
    p.enable(); sweep(); p.disable()
    print("sweep each ms", (time.perf_counter()-t)/300*1000, "cpu", (time.process_time()-c)/300*1000)
    pstats.Stats(p).sort_stats("cumulative").print_stats(45)
