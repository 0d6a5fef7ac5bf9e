# The targets of the cluster; the Makefile of the toolkit includes them.
SCHEDULER ?= tcp://127.0.0.1:8786
override SCHEDULER := $(value SCHEDULER)
export SCHEDULER
# What Dask watches itself with takes a tenth of a worker: its profiler, and a clock of 20 ms.
DASK := PYTHONPATH=eval/scripts:eval OMP_NUM_THREADS=1 DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False \
  DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL=1s DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL=5s \
  $(PY) -m dask

.PHONY: setup-cluster scheduler worker
## Score on several machines (eval/extras/cluster)
setup-cluster: setup ## install Dask into .venv
	$(INSTALL) $(LOCKED) -r eval/extras/cluster/requirements.txt

scheduler: ## start Dask's scheduler on this machine
	$(DASK) scheduler $(ARGS)

worker: ## score for a scheduler: make worker SCHEDULER=tcp://10.0.0.1:8786 ARGS="--nworkers 8"
	$(DASK) worker "$$SCHEDULER" --nthreads 1 $(ARGS)
