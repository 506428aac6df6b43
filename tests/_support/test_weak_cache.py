import gc
import weakref

from dpfast._support.weak_cache import keep_last


class Thing:
    pass


def counted(n):
    calls = []

    @keep_last(n)
    def ask(objects, number=0):
        calls.append(number)
        return len(calls)

    return ask, calls


def test_the_same_objects_are_asked_once_and_others_again():
    ask, calls = counted(8)
    a, b = Thing(), Thing()
    assert [ask((a,)), ask((a,)), ask((b,)), ask((a, b)), ask((a, b)), ask((a,), 3), ask((a,))] == [1, 1, 2, 3, 3, 4, 1]
    assert calls == [0, 0, 0, 3]


def test_no_object_is_kept_alive_and_one_in_its_place_is_another():
    ask, calls = counted(8)
    gc.freeze()  # all that there is already, which would be searched each time
    for _ in range(50):  # which often come to lie where the last one was
        thing = Thing()
        ask((thing,))
        gone = weakref.ref(thing)
        del thing
        gc.collect()
        assert gone() is None
    assert len(calls) == 50


def test_only_the_last_are_kept():
    ask, calls = counted(2)
    things = [Thing() for _ in range(3)]
    for thing in (*things, things[0]):
        ask((thing,))
    assert len(calls) == 4
